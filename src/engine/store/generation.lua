local GENERATION = table.remove(ARGV)

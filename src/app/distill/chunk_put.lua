-- Puts the papers of a chunk in place of what may be there.
-- KEYS: the chunk of one run. ARGV: the time to live, ms; the papers, in order.
-- Returns how many there are. Safe to repeat.
redis.call('DEL', KEYS[1])
local count = redis.call('RPUSH', KEYS[1], unpack(ARGV, 2))
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return count

-- Replaces the papers of a chunk.
--   key chunk
--   arg ms: the time to live
--   args papers: in order
-- Returns how many there are. Idempotent.
redis.call('DEL', KEYS.chunk)
local count = redis.call('RPUSH', KEYS.chunk, unpack(ARGV, FIRST.papers))
redis.call('PEXPIRE', KEYS.chunk, ARGV.ms)
return count

-- Renews the lease of a download, if it is taken at all.
--   key taken
--   arg download
--   arg ms: from now
-- The key is of the sys group.
-- Returns 1, or 0: it is not taken. Idempotent but for the end.
if not redis.call('ZSCORE', KEYS.taken, ARGV.download) then
    return 0
end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('ZADD', KEYS.taken, now + ARGV.ms, ARGV.download)
return 1

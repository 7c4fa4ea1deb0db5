-- Counts an event stream of a user, or renews its lease.
--   key streams: sorted set of one user: ids of streams -> until when, ms
--   arg id: of the stream
--   arg most: how many a user may have
--   arg lease_ms
-- Returns 1, or 0: there are too many. Idempotent.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS.streams, '-inf', now)
if not redis.call('ZSCORE', KEYS.streams, ARGV.id)
    and redis.call('ZCARD', KEYS.streams) >= tonumber(ARGV.most) then
    return 0
end
redis.call('ZADD', KEYS.streams, now + ARGV.lease_ms, ARGV.id)
redis.call('PEXPIRE', KEYS.streams, ARGV.lease_ms)
return 1

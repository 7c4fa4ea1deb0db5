-- Records a user's request for a file, unless too many of this user's downloads are waiting.
--   key status
--   key downloads
--   arg id: of the download
--   arg ms: the time to live of its status
--   arg waiting_max: how many may wait
--   args fields: field, value, field, value, ... of the status
-- downloads are those of the user, a sorted set: "<id>" is waiting or being built, "<id>:<bytes>"
-- is a file that is held; each with the time from which it does not count any more.
-- Returns 1: recorded. 0: too many are waiting. Idempotent but for the times.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS.downloads, '-inf', now)
local waiting = 0
for _, member in ipairs(redis.call('ZRANGE', KEYS.downloads, 0, -1)) do
    if not string.find(member, ':', 1, true) and member ~= ARGV.id then
        waiting = waiting + 1
    end
end
if waiting >= tonumber(ARGV.waiting_max) then
    return 0
end
redis.call('HSET', KEYS.status, 'created_at', now, unpack(ARGV, FIRST.fields))
redis.call('PEXPIRE', KEYS.status, ARGV.ms)
redis.call('ZADD', KEYS.downloads, now + ARGV.ms, ARGV.id)
redis.call('PEXPIRE', KEYS.downloads, ARGV.ms)
return 1

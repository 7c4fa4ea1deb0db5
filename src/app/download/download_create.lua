-- A user asks for a file: notes it, unless too many of this user's are waiting.
-- KEYS: status of the download, the user's downloads.
-- ARGV: the download's id, ms that its status lives, how many may wait; then fields and values of the status.
-- Returns 1: noted. 0: too many are waiting. A repeat changes nothing.
-- The user's downloads are a sorted set: "<id>" is waiting or being built, "<id>:<bytes>" is a file that is held;
-- each with the time from which it does not count any more.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
local waiting = 0
for _, member in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
    if not string.find(member, ':', 1, true) and member ~= ARGV[1] then
        waiting = waiting + 1
    end
end
if waiting >= tonumber(ARGV[3]) then
    return 0
end
redis.call('HSET', KEYS[1], 'created_at', now, unpack(ARGV, 4))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('ZADD', KEYS[2], now + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1

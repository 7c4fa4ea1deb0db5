-- Notes that a session was used, if nobody has done so lately.
-- KEYS: the session, its owner's set.
-- ARGV: the sid, milliseconds to live, the time in seconds, seconds between renewals here, and of
--       the row in MySQL.
-- Returns 2: done, and the row is due: the caller renews it. 1: done. 0: nothing to do, or it is not
-- there. A repeat changes nothing.
if redis.call('HEXISTS', KEYS[1], 'user_id') == 0 then
    return 0
end
local now = tonumber(ARGV[3])
local used = redis.call('HMGET', KEYS[1], 'last_activity', 'row_time')
if now - (tonumber(used[1]) or 0) < tonumber(ARGV[4]) then
    return 0
end
redis.call('SADD', KEYS[2], ARGV[1])
redis.call('HSET', KEYS[1], 'last_activity', now)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
if now - (tonumber(used[2]) or 0) < tonumber(ARGV[5]) then
    return 1
end
redis.call('HSET', KEYS[1], 'row_time', now)
return 2

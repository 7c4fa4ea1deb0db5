-- Renews a session that was used, unless it was renewed lately.
--   key session
--   key set: the sids of its owner
--   arg sid
--   arg ms: to live
--   arg now: the time in seconds
--   arg each: seconds between two renewals here
--   arg row_each: and of the row in MySQL
-- Returns 2: done, and the row is due: the caller renews it. 1: done. 0: nothing to do, or it is
-- not there. Idempotent.
if redis.call('HEXISTS', KEYS.session, 'user_id') == 0 then
    return 0
end
local now = tonumber(ARGV.now)
local used = redis.call('HMGET', KEYS.session, 'last_activity', 'row_time')
if now - (tonumber(used[1]) or 0) < tonumber(ARGV.each) then
    return 0
end
redis.call('SADD', KEYS.set, ARGV.sid)
redis.call('HSET', KEYS.session, 'last_activity', now)
redis.call('PEXPIRE', KEYS.session, ARGV.ms)
if now - (tonumber(used[2]) or 0) < tonumber(ARGV.row_each) then
    return 1
end
redis.call('HSET', KEYS.session, 'row_time', now)
return 2

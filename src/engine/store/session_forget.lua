-- Drops a session from Redis, so that the next reader asks MySQL. The tombstone of an ended session
-- stays: it keeps a slow loader from reviving it.
--   key session
-- Returns 1: dropped. 0: there was none. Idempotent.
if redis.call('TYPE', KEYS.session).ok ~= 'hash'
    or redis.call('HEXISTS', KEYS.session, 'user_id') == 0 then
    return 0
end
return redis.call('UNLINK', KEYS.session)

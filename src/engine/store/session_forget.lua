-- Drops a session from Redis, so that the next reader asks MySQL. What an ended session has left
-- behind stays: it keeps a slow loader from reviving it.
-- KEYS: the session. ARGV: nothing.
-- Returns 1: dropped. 0: there was none. A repeat changes nothing.
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' or redis.call('HEXISTS', KEYS[1], 'user_id') == 0 then
    return 0
end
return redis.call('UNLINK', KEYS[1])

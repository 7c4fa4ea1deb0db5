-- Puts a session into Redis, unless it has ended. One that is there already is left as it is.
-- KEYS: the session, its owner's set. On a cluster the two are in different slots: then these are
--       two steps, and the set comes first.
-- ARGV: the sid, milliseconds to live, then field, value, ...
-- Returns 1: it is there. 0: it has ended. A repeat changes nothing.
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then
    redis.call('DEL', KEYS[1])
elseif redis.call('HEXISTS', KEYS[1], 'ended') == 1 then
    return 0
end
redis.call('SADD', KEYS[2], ARGV[1])
if redis.call('HEXISTS', KEYS[1], 'user_id') == 0 then
    redis.call('HSET', KEYS[1], unpack(ARGV, 3))
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1

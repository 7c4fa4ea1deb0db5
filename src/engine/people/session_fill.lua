-- Puts a session into Redis, unless it has ended. One that is there already is left as it is.
--   key session
--   key set: the sids of its owner. On a cluster the two are in different slots: then these are two
--       steps, and the set comes first.
--   key owner: the record of its owner, or its version alone (cache_changed.lua)
--   arg sid
--   arg ms: to live
--   arg row_time: when the row in MySQL was last renewed, in seconds
--   arg version: of its owner when the row was read, a fencing token; none: it does not matter
--   args fields: field, value, ...
-- Returns 1: it is there. 0: it has ended. 2: its owner was changed since. Idempotent.
if redis.call('TYPE', KEYS.session).ok ~= 'hash' then
    redis.call('DEL', KEYS.session)
elseif redis.call('HEXISTS', KEYS.session, 'ended') == 1 then
    return 0
end
if ARGV.version ~= 'none' and redis.call('TYPE', KEYS.owner).ok == 'hash' then
    local known = tonumber(redis.call('HGET', KEYS.owner, 'version'))
    if known and known > tonumber(ARGV.version) then
        return 2
    end
end
redis.call('SADD', KEYS.set, ARGV.sid)
if redis.call('HEXISTS', KEYS.session, 'user_id') == 0 then
    redis.call('HSET', KEYS.session, 'row_time', ARGV.row_time, unpack(ARGV, FIRST.fields))
    redis.call('PEXPIRE', KEYS.session, ARGV.ms)
end
return 1

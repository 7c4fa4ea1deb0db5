-- Puts a template into Redis, unless a newer version of it is known; what is no hash is replaced.
-- Of a template that was deleted only the version stays, as a fencing token. A category whose
-- default was deleted has no templates left.
--   key record: hash, the template
--   key chosen: string, id of the default of its category
--   key categories: set
--   arg id
--   arg category
--   arg version
--   arg state: "default", "plain", "gone"
--   arg ms: to live
--   args fields: field, value, ..., the version among them
-- Returns 1: put. 0: a newer one is known, and nothing was changed. Idempotent.
if redis.call('TYPE', KEYS.record).ok == 'hash' then
    local known = tonumber(redis.call('HGET', KEYS.record, 'version'))
    if known and known > tonumber(ARGV.version) then
        return 0
    end
end
redis.call('DEL', KEYS.record)
if ARGV.state == 'gone' then
    redis.call('HSET', KEYS.record, 'version', ARGV.version)
else
    redis.call('HSET', KEYS.record, unpack(ARGV, FIRST.fields))
    redis.call('SADD', KEYS.categories, ARGV.category)
    redis.call('PEXPIRE', KEYS.categories, ARGV.ms)
end
redis.call('PEXPIRE', KEYS.record, ARGV.ms)

if ARGV.state == 'default' then
    redis.call('SET', KEYS.chosen, ARGV.id, 'PX', ARGV.ms)
elseif redis.call('GET', KEYS.chosen) == ARGV.id then
    redis.call('DEL', KEYS.chosen)
    if ARGV.state == 'gone' then
        redis.call('SREM', KEYS.categories, ARGV.category)
    end
end
return 1

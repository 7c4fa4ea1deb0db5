-- Puts a row of MySQL into Redis, unless a newer one is known. What is no hash is no record, and is
-- replaced.
--   key record
--   arg version: of the row
--   arg ms: to live; 0: no end
--   args fields: field, value, ..., the version among them
-- Returns 1: filled. 0: refused, the row was changed after it was read. Idempotent.
if redis.call('TYPE', KEYS.record).ok == 'hash' then
    local known = tonumber(redis.call('HGET', KEYS.record, 'version'))
    if known and known > tonumber(ARGV.version) then
        return 0
    end
end
redis.call('DEL', KEYS.record)
redis.call('HSET', KEYS.record, unpack(ARGV, FIRST.fields))
if ARGV.ms ~= '0' then
    redis.call('PEXPIRE', KEYS.record, ARGV.ms)
end
return 1

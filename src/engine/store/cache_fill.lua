-- Puts a row of MySQL into Redis, unless a newer one is known.
-- KEYS: the record. ARGV: the row's version, milliseconds to live (0: no end), then field, value, ...
-- Returns 1: filled. 0: refused, the row was changed after it was read. A repeat changes nothing.
-- Something that is no hash is nobody's record, and is replaced.
if redis.call('TYPE', KEYS[1]).ok == 'hash' then
    local known = tonumber(redis.call('HGET', KEYS[1], 'version'))
    if known and known > tonumber(ARGV[1]) then
        return 0
    end
end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'version', ARGV[1], unpack(ARGV, 3))
if ARGV[2] ~= '0' then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1

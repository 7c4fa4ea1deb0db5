-- Leaves the version of a changed row, alone: the record counts as missing, and a fill with an older
-- row is refused. Also where nothing was: somebody may be loading the old row just now.
-- KEYS: the record. ARGV: the row's version, milliseconds to live (0: no end).
-- Returns 1: what was there is gone. 0: nothing older was there. A repeat changes nothing.
if redis.call('TYPE', KEYS[1]).ok == 'hash' then
    local known = tonumber(redis.call('HGET', KEYS[1], 'version'))
    if known and known >= tonumber(ARGV[1]) then
        return 0
    end
end
local dropped = redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'version', ARGV[1])
if ARGV[2] ~= '0' then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return dropped

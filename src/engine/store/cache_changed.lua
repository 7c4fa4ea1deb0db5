-- Replaces a record by the version of its changed row, alone: the record counts as missing, and the
-- version is a fencing token that refuses a fill with an older row. Also where nothing was: a
-- loader may have read the old row already.
--   key record
--   arg version: of the row
--   arg ms: to live; 0: no end
-- Returns 1: what was there is gone. 0: nothing older was there. Idempotent.
if redis.call('TYPE', KEYS.record).ok == 'hash' then
    local known = tonumber(redis.call('HGET', KEYS.record, 'version'))
    if known and known >= tonumber(ARGV.version) then
        return 0
    end
end
local dropped = redis.call('DEL', KEYS.record)
redis.call('HSET', KEYS.record, 'version', ARGV.version)
if ARGV.ms ~= '0' then
    redis.call('PEXPIRE', KEYS.record, ARGV.ms)
end
return dropped

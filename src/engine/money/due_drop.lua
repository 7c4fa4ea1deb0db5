-- Takes a member out of a sorted set of times, unless its time was renewed.
-- KEYS: the sorted set. ARGV: the member; the latest time it may have.
-- Returns 1, or 0: it was renewed, or was not there. Safe to repeat.
local at = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not at or tonumber(at) > tonumber(ARGV[2]) then
    return 0
end
return redis.call('ZREM', KEYS[1], ARGV[1])

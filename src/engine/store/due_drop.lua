-- Takes a member out of a sorted set of times, unless its time was renewed.
--   key times
--   arg member
--   arg latest: the latest time that it may have
-- Returns 1, or 0: it was renewed, or was not there. Idempotent.
local at = redis.call('ZSCORE', KEYS.times, ARGV.member)
if not at or tonumber(at) > tonumber(ARGV.latest) then
    return 0
end
return redis.call('ZREM', KEYS.times, ARGV.member)

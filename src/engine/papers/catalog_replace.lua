-- Replaces the whole catalog in one step: readers see the old one or the new one.
--   key lock
--   keys catalog
--   arg token: of the lock
--   args values: for each key of the catalog "hash", "set" or "gone", how many values follow, and
--        the values; of a hash: field, value, field, value, ...
-- The catalog's keys are all of the new catalog and those of the old one that it has no more. On a
-- cluster they carry one hash tag, as keys of the sys group.
-- Returns 1: done. 0: the lock belongs to another loader by now, and this catalog may be older than
-- the one in Redis; nothing was changed. Idempotent.
if redis.call('GET', KEYS.lock) ~= ARGV.token then
    return 0
end

local VALUES_MAX = 2000 -- of one call; even, so that a field keeps its value
local add = {hash = 'HSET', set = 'SADD'}
local at = FIRST.values
for i = FIRST.catalog, #KEYS do
    local kind, count = ARGV[at], tonumber(ARGV[at + 1])
    at = at + 2
    redis.call('DEL', KEYS[i])
    for first = at, at + count - 1, VALUES_MAX do
        local last = math.min(first + VALUES_MAX, at + count) - 1
        redis.call(add[kind], KEYS[i], unpack(ARGV, first, last))
    end
    at = at + count
end
return 1

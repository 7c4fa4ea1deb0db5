-- Replaces the whole catalog in one step: readers see the old one or the new one.
--
-- KEYS  1: the lock of whoever loads; then every key of the catalog, the old ones too
-- ARGV  1: the lock's token; then for each of those keys: "hash", "set" or "gone", how many
--       values follow, and the values (of a hash: field, value, field, value, ...)
--
-- Returns 1, or 0 when the lock is no longer ours: what we bring may be older than what is there.
-- On a cluster all of these carry one hash tag, as keys of the sys group.

if redis.call("GET", KEYS[1]) ~= ARGV[1] then
    return 0
end

local VALUES_MAX = 2000 -- of one call; even, so that a field keeps its value
local add = {hash = "HSET", set = "SADD"}
local at = 2
for i = 2, #KEYS do
    local kind, count = ARGV[at], tonumber(ARGV[at + 1])
    at = at + 2
    redis.call("DEL", KEYS[i])
    for first = at, at + count - 1, VALUES_MAX do
        local last = math.min(first + VALUES_MAX, at + count) - 1
        redis.call(add[kind], KEYS[i], unpack(ARGV, first, last))
    end
    at = at + count
end
return 1

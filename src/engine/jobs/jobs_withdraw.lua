-- Takes jobs out of a queue that are not in work: their rows have come to an end without it.
--   key waiting
--   key delays
--   key info
--   key users
--   key held
--   key aside
--   args jobs: two for each: id, version (of the row at its end: a job of a later one stays)
-- All keys are of one queue; info and aside as in jobs_push.lua, held as in jobs_take.lua.
-- Returns for each job: 1: it has left. 0: it is in work, in a later version, or not there.
-- Idempotent.
local ids, out = {}, {}
local left, held = {}, {} -- ids of those that leave; the same as they stand in held
local users = {}          -- uid -> jobs that leave
for i = FIRST.jobs, #ARGV, 2 do
    ids[#ids + 1] = ARGV[i]
end
local seen = {}
for n, text in ipairs(#ids > 0 and redis.call('HMGET', KEYS.info, unpack(ids)) or {}) do
    local id = ids[n]
    local version, priority, order, uid, lease =
        string.match(text or '', '^(%d+) %d+ (%d+) (%d+) (%d+) %d+ (%S+) %S+$')
    out[n] = 0
    if lease == '-' and not seen[id] and
        tonumber(version) <= tonumber(ARGV[FIRST.jobs + n * 2 - 1]) then
        seen[id] = true
        left[#left + 1] = id
        held[#held + 1] = string.format('%03d%014.0f', priority, order) .. id
        users[uid] = (users[uid] or 0) + 1
        out[n] = 1
    end
end
if #left > 0 then
    redis.call('HDEL', KEYS.info, unpack(left))
    redis.call('ZREM', KEYS.waiting, unpack(left))
    redis.call('ZREM', KEYS.delays, unpack(left))
    redis.call('ZREM', KEYS.aside, unpack(left))
    redis.call('ZREM', KEYS.held, unpack(held))
end
for uid, count in pairs(users) do
    if redis.call('HINCRBY', KEYS.users, uid, -count) <= 0 then
        redis.call('HDEL', KEYS.users, uid)
    end
end
return out

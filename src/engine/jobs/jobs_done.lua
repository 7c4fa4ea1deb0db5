-- Ends jobs, well or not: they leave the queue, unless a later version was pushed meanwhile.
--   key waiting
--   key leases
--   key info
--   key users
--   key probes
--   key state
--   args jobs: three for each: id, lease, word (done, failed: counted in state)
-- All keys are of one queue; info as in jobs_push.lua. A user whose jobs are held gets one more.
-- Returns for each job: 1: it has left. 2: its later version waits now. 0: another holder has it,
-- or none; nothing was changed, and a repeat ends so.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local ids, out = {}, {}
local ended, left = {}, {}   -- ids: of all that have ended; of those that leave the queue
local words, users = {}, {}  -- word -> jobs; uid -> jobs that leave
for i = FIRST.jobs, #ARGV, 3 do
    ids[#ids + 1] = ARGV[i]
end
local some_are_held = redis.call('EXISTS', KEYS.probes) == 1
local function wait_again(id, uid, since, next)
    local version, priority, order = string.match(next, '^(%d+),(%d+),(%d+)$')
    redis.call('HSET', KEYS.info, id, version .. ' 0 ' .. priority .. ' ' .. order .. ' ' .. uid ..
               ' ' .. since .. ' - -')
    redis.call('ZADD', KEYS.waiting,
               string.format('%.0f', tonumber(priority) * 2 ^ 45 + tonumber(order)), id)
end
local seen = {}
for n, text in ipairs(redis.call('HMGET', KEYS.info, unpack(ids))) do
    local id, i = ids[n], FIRST.jobs + (n - 1) * 3
    local uid, since, lease, next =
        string.match(text or '', '^%d+ %d+ %d+ %d+ (%d+) (%d+) (%S+) (%S+)$')
    if lease ~= ARGV[i + 1] or seen[id] then
        out[n] = 0
    else
        local word = ARGV[i + 2]
        seen[id] = true
        ended[#ended + 1] = id
        words[word] = (words[word] or 0) + 1
        if next ~= '-' then
            wait_again(id, uid, since, next)
            out[n] = 2
        else
            left[#left + 1] = id
            users[uid] = (users[uid] or 0) + 1
            out[n] = 1
        end
        if some_are_held and redis.call('ZSCORE', KEYS.probes, uid) then
            redis.call('ZADD', KEYS.probes, now, uid)
            redis.call('HINCRBY', KEYS.state, 'c' .. uid, 1)
        end
    end
end
if #ended > 0 then
    redis.call('ZREM', KEYS.leases, unpack(ended))
end
if #left > 0 then
    redis.call('HDEL', KEYS.info, unpack(left))
end
for uid, count in pairs(users) do
    if redis.call('HINCRBY', KEYS.users, uid, -count) <= 0 then
        redis.call('HDEL', KEYS.users, uid)
    end
end
for word, count in pairs(words) do
    redis.call('HINCRBY', KEYS.state, word, count)
end
return out

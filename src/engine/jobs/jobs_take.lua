-- Leases the next jobs of a queue to a node: those that wait, by priority, then order. Before that,
-- jobs whose lease or delay is over wait again, and users whose jobs are held are looked at again.
--   key waiting
--   key delays
--   key leases
--   key info
--   key held
--   key probes
--   key aside
--   key state
--   arg count: how many at most
--   arg work_max: how many may be in work over all nodes; 0: no limit
--   arg lease: of the caller, for all of them
--   arg ms: the lease, from now
-- All keys are of one queue; info as in jobs_push.lua. The jobs of a user in probes are held: they
-- go from waiting to held, which has the uid as score, and the place in the line before the id. One
-- of them is handed out when the time in probes has come, and one more for each in state 'c<uid>'.
-- Nothing is handed out while the queue is paused, or not refilled after a restart of Redis: state
-- 'run' names the Redis whose queue is whole. Jobs that were set aside until the time in state
-- 'recall' wait again.
-- Returns {1, or 0: closed; waiting jobs; ms until the next lease, delay or probe ends, -1: none;
-- then id and info of each job}. Not idempotent: a repeat takes others; the first ones are taken
-- again when their lease is over.
local BATCH, HOLD_MAX, PROBE_MS = 200, 1000, 1000
local state = redis.call('HMGET', KEYS.state, 'run', 'paused', 'recall')
if state[1] ~= GENERATION or state[2] == '1' then
    return {0, redis.call('ZCARD', KEYS.waiting), -1}
end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local function score(priority, order)
    return string.format('%.0f', tonumber(priority) * 2 ^ 45 + tonumber(order))
end
local function wait_again(key, ended)
    local ids = redis.call('ZRANGEBYSCORE', key, '-inf', ended, 'LIMIT', 0, BATCH)
    for _, id in ipairs(ids) do
        local text = redis.call('HGET', KEYS.info, id)
        redis.call('ZREM', key, id)
        if text then
            local head, priority, order, rest, lease, next =
                string.match(text, '^(%d+ %d+) (%d+) (%d+) (%d+ %d+) (%S+) (%S+)$')
            if next ~= '-' then
                local version
                version, priority, order = string.match(next, '^(%d+),(%d+),(%d+)$')
                head = version .. ' 0'
            end
            redis.call('HSET', KEYS.info, id, head .. ' ' .. priority .. ' ' .. order .. ' ' ..
                       rest .. ' - -')
            redis.call('ZADD', KEYS.waiting, score(priority, order), id)
        end
    end
    return #ids
end
wait_again(KEYS.leases, now)
wait_again(KEYS.delays, now)
if state[3] and wait_again(KEYS.aside, state[3]) == 0 then
    redis.call('HDEL', KEYS.state, 'recall')
end

local out, infos, leases = {}, {}, {} -- what is written at the end, in one call each
local count, work_max = tonumber(ARGV.count), tonumber(ARGV.work_max)
if work_max > 0 then
    count = math.min(count, work_max - redis.call('ZCARD', KEYS.leases))
end
local function hand_out(id, text)
    local version, tries, rest = string.match(text, '^(%d+) (%d+) (%d+ %d+ %d+ %d+) ')
    text = version .. ' ' .. (tries + 1) .. ' ' .. rest .. ' ' .. ARGV.lease .. ' -'
    infos[#infos + 1] = id
    infos[#infos + 1] = text
    leases[#leases + 1] = now + ARGV.ms
    leases[#leases + 1] = id
    out[#out + 1] = id
    out[#out + 1] = text
    count = count - 1
end
-- Some held jobs of a user. None left: the user's jobs are not held any more.
local function probe(uid)
    local credit = tonumber(redis.call('HGET', KEYS.state, 'c' .. uid) or 0)
    local some = redis.call('ZRANGEBYSCORE', KEYS.held, uid, uid, 'LIMIT', 0,
                            math.min(count, 1 + credit))
    redis.call('HDEL', KEYS.state, 'c' .. uid)
    for _, member in ipairs(some) do
        local id = string.sub(member, 18)
        local text = redis.call('HGET', KEYS.info, id)
        redis.call('ZREM', KEYS.held, member)
        if text then
            hand_out(id, text)
        end
    end
    if redis.call('ZCOUNT', KEYS.held, uid, uid) > 0 then
        redis.call('ZADD', KEYS.probes, now + PROBE_MS, uid)
    else
        redis.call('ZREM', KEYS.probes, uid)
    end
end
for _, uid in ipairs(redis.call('ZRANGEBYSCORE', KEYS.probes, '-inf', now, 'LIMIT', 0, BATCH)) do
    if count > 0 then
        probe(uid)
    end
end
local moves = 0
local some_are_held = redis.call('EXISTS', KEYS.probes) == 1
while count > 0 and moves < HOLD_MAX do
    local popped = redis.call('ZPOPMIN', KEYS.waiting, math.min(count, BATCH))
    if #popped == 0 then
        break
    end
    local ids = {}
    for i = 1, #popped, 2 do
        ids[#ids + 1] = popped[i]
    end
    for n, text in ipairs(redis.call('HMGET', KEYS.info, unpack(ids))) do
        local id = ids[n]
        local priority, order, uid = string.match(text or '', '^%d+ %d+ (%d+) (%d+) (%d+) ')
        if uid and some_are_held and redis.call('ZSCORE', KEYS.probes, uid) then
            redis.call('ZADD', KEYS.held, uid, string.format('%03d%014.0f', priority, order) .. id)
            moves = moves + 1
        elseif uid then
            hand_out(id, text)
        end
    end
end
if #infos > 0 then
    redis.call('HSET', KEYS.info, unpack(infos))
    redis.call('ZADD', KEYS.leases, unpack(leases))
end
local soonest = -1
for _, key in ipairs({KEYS.leases, KEYS.delays, KEYS.probes}) do
    local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]
    local left = first and math.max(0, first - now)
    if left and (soonest < 0 or left < soonest) then
        soonest = left
    end
end
return {1, redis.call('ZCARD', KEYS.waiting), soonest, unpack(out)}

-- Puts jobs into a queue. A job that is in the queue already, or in work, keeps its place; a later
-- version of it is noted there, so that no job is twice in a queue.
--   key waiting
--   key delays
--   key info
--   key users
--   key aside
--   key wake
--   arg all_max: how many the queue may have; 0: no limit
--   arg user_max: how many of them may be one user's; 0: no limit
--   args jobs: seven for each: id, uid, version, priority, order, since (when it was made, ms; 0:
--        now), delay (ms; 0: none)
-- All keys are of one queue. info is a hash: id -> "version tries priority order uid since lease
-- next"; lease is that of its holder, next the version that was pushed while it was in work, as
-- "version,priority,order"; '-' for none of either. waiting is ordered by priority, then order. A
-- job in aside waits for a later version, or for an admin. wake is a stream of one entry, which
-- changes when jobs wait where none did: nodes without work wait for that.
-- Returns for each job: 1: it waits, or is delayed. 2: its later version is noted. 0: this version
-- or a later one was there. -1: the user has too many. -2: the queue is full. Idempotent.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local all_max, user_max = tonumber(ARGV.all_max), tonumber(ARGV.user_max)
local idle = redis.call('EXISTS', KEYS.waiting) == 0
local all = all_max > 0 and redis.call('HLEN', KEYS.info) or 0
local infos, places, delays = {}, {}, {} -- what is written at the end, in one call each
local users, more = {}, {}               -- jobs of a user; those that came now
local function score(priority, order)
    return string.format('%.0f', tonumber(priority) * 2 ^ 45 + tonumber(order))
end
local function put(list, a, b)
    list[#list + 1] = a
    list[#list + 1] = b
end
local function flush()
    if #infos > 0 then
        redis.call('HSET', KEYS.info, unpack(infos))
    end
    if #places > 0 then
        redis.call('ZADD', KEYS.waiting, unpack(places))
    end
    if #delays > 0 then
        redis.call('ZADD', KEYS.delays, unpack(delays))
    end
    infos, places, delays = {}, {}, {}
end
local function add(id, uid, version, priority, order, since, delay)
    if all_max > 0 and all >= all_max then
        return -2
    end
    if user_max > 0 then
        users[uid] = users[uid] or tonumber(redis.call('HGET', KEYS.users, uid) or 0)
        if users[uid] + (more[uid] or 0) >= user_max then
            return -1
        end
    end
    if since == '0' then
        since = string.format('%.0f', now)
    end
    local text = version .. ' 0 ' .. priority .. ' ' .. order .. ' ' .. uid .. ' ' .. since ..
        ' - -'
    put(infos, id, text)
    if delay == '0' then
        put(places, score(priority, order), id)
    else
        put(delays, now + delay, id)
    end
    all, more[uid] = all + 1, (more[uid] or 0) + 1
    return 1, text
end
local function renew(id, text, version, priority, order)
    local has, tries, was, at, rest, lease, next =
        string.match(text, '^(%d+) (%d+) (%d+) (%d+) (%d+ %d+) (%S+) (%S+)$')
    local latest = tonumber(string.match(next, '^(%d+),') or has)
    if tonumber(version) <= latest then
        return 0, text
    end
    flush() -- it may have come in this call
    if lease ~= '-' then
        text = has .. ' ' .. tries .. ' ' .. was .. ' ' .. at .. ' ' .. rest .. ' ' .. lease ..
            ' ' .. version .. ',' .. priority .. ',' .. order
        redis.call('HSET', KEYS.info, id, text)
        return 2, text
    end
    -- It waits: the more urgent of both priorities counts, and its place in the line is kept.
    local urgent = tonumber(priority) < tonumber(was)
    if urgent then
        was = priority
    end
    if redis.call('ZREM', KEYS.aside, id) == 1 then
        redis.call('ZADD', KEYS.waiting, score(was, at), id)
    elseif urgent then
        redis.call('ZADD', KEYS.waiting, 'XX', score(was, at), id)
    end
    text = version .. ' 0 ' .. was .. ' ' .. at .. ' ' .. rest .. ' - -'
    redis.call('HSET', KEYS.info, id, text)
    return 2, text
end
local ids, out = {}, {}
for i = FIRST.jobs, #ARGV, 7 do
    ids[#ids + 1] = ARGV[i]
end
local known = {} -- id -> info
for n, text in ipairs(#ids > 0 and redis.call('HMGET', KEYS.info, unpack(ids)) or {}) do
    known[ids[n]] = text
end
for n, id in ipairs(ids) do
    local i = FIRST.jobs + (n - 1) * 7
    local version, priority, order = ARGV[i + 2], ARGV[i + 3], ARGV[i + 4]
    local text = known[id]
    if text then
        out[n], known[id] = renew(id, text, version, priority, order)
    else
        out[n], known[id] =
            add(id, ARGV[i + 1], version, priority, order, ARGV[i + 5], ARGV[i + 6])
    end
end
local delayed = #delays > 0
flush()
for uid, count in pairs(more) do
    redis.call('HINCRBY', KEYS.users, uid, count)
end
if delayed or (idle and redis.call('EXISTS', KEYS.waiting) == 1) then
    redis.call('XADD', KEYS.wake, 'MAXLEN', 1, '*', 'at', now)
end
return out

-- Takes back what was not used, then leases what is wanted, all or none per request: a place in the
-- window of requests, one in the window of tokens, and one in each cap. engine/ai/permits_private.h
-- explains the algorithm; the numbers in comments here are those of its steps.
--   key ring: of the service
--   keys windows: for each API key its window, and its counts of the minute, day and month
--   arg slot_ms: ms of a slot
--   arg slots: that count
--   arg fresh: 1 if no permit was ever given
--   arg node: of the caller
--   arg share: of jobs, percent of the rate
--   arg requests: wanted for runs
--   arg head: tokens of the first request
--   arg each: tokens of each other
--   arg job_requests: wanted for jobs
--   arg job_head: likewise
--   arg job_each
--   arg advance: requests that are wanted in advance
--   arg large: tokens of a request that is larger than any limit, or 0
--   arg count: of API keys
--   args further: for each API key: 1 if it is used, requests and tokens of a minute, caps of the
--       minute, day and month (-1: none). Then any number of returns: number of the API key, slot,
--       requests not sent, tokens too many (negative: too few).
-- Returns {ms until it is worth to ask again, requests used and allowed, tokens used and allowed,
--       keys at rest}, and for each lease: number of the key, slot, requests, tokens, and what it
--       is for: 0: runs, 1: jobs, 2: the large one, 3: any. Not idempotent: a repeat leases again.
local LOSS_MS, BEAT_MS, NEED_MAX = 2000, 2000, 65536
local LINE_SLOTS, BURST_SLOTS, MINUTE_SLOTS = 4, 2, 480
local RUNS, JOBS, LARGE, ANY = 0, 1, 2, 3
local SLOT_MS, SLOTS, KEY_ARGS = tonumber(ARGV.slot_ms), tonumber(ARGV.slots), 6
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local slot = math.floor(now / SLOT_MS)
local span = SLOT_MS * SLOTS * 32 / 33 -- (5)
local count = tonumber(ARGV.count)

local function decimal(v)
    return string.format('%.0f', v)
end

-- (6) What may have been lost was sent in the slot `lost` at the latest.
local durable = string.find(redis.call('INFO', 'persistence'), 'aof_enabled:1', 1, true)
local ring = {}
local fields = redis.call('HGETALL', KEYS.ring)
for i = 1, #fields, 2 do
    ring[fields[i]] = fields[i + 1]
end
local at, since, lost, bounded = tonumber(ring.at) or slot, tonumber(ring.since) or 0, nil, false
-- A clock that was set back stands still until it is there again.
if at > slot and at - slot < SLOTS then
    slot = at
    now = math.max(now, slot * SLOT_MS)
end
if not ring.run then
    if ARGV.fresh ~= '1' then
        lost = slot
        since = slot
    end
elseif ring.run ~= GENERATION or at > slot then
    lost = slot
    if durable and at <= slot then
        lost = math.min(slot, at + math.ceil((LOSS_MS + BEAT_MS) / SLOT_MS))
        bounded = true
    end
    since = slot
elseif (slot - at) * SLOT_MS > BEAT_MS then
    since = slot
end
if ring.clean then -- (8)
    if durable and ring.clean == ring.run and at <= slot then
        lost = nil
    end
    since = slot
    redis.call('HDEL', KEYS.ring, 'clean')
end
local share = ARGV.share / 100
local runs = {what = RUNS, part = 1 - share, ahead = -1, wanted = tonumber(ARGV.requests),
              head = tonumber(ARGV.head), each = tonumber(ARGV.each)}
local jobs = {what = JOBS, part = share, ahead = 1, wanted = tonumber(ARGV.job_requests),
              head = tonumber(ARGV.job_head), each = tonumber(ARGV.job_each)}
local extra, large = tonumber(ARGV.advance), tonumber(ARGV.large)
local largest = math.max(runs.head, runs.each, jobs.head, jobs.each, large)
if not ring.big and largest > NEED_MAX then -- (9)
    redis.call('HSET', KEYS.ring, 'big', 1)
    since = slot
end
redis.call('HSET', KEYS.ring, 'run', GENERATION, 'at', decimal(slot), 'since', decimal(since))
local known_ms = (slot - since) * SLOT_MS
local open = not durable or since == 0 or known_ms >= LOSS_MS

local starts = PERIODS(math.floor(now / 1000))

local function calls_of(w, period)
    local start, calls = string.match(redis.call('GET', w.counts[period]) or '', '^(%d+) (%d+)$')
    return tonumber(start) == starts[period] and tonumber(calls) or 0
end

local function count_calls(w, period, calls)
    redis.call('SET', w.counts[period], decimal(starts[period]) .. ' ' .. decimal(calls))
end

-- (4) Slots that no longer count leave the window.
local function advance(w, to)
    if to - w.at >= SLOTS or w.at > slot then
        redis.call('DEL', w.key)
        w.r, w.t = 0, 0
    elseif to > w.at then
        local fields = {}
        for s = w.at + 1, to do
            fields[#fields + 1] = 'r' .. s % SLOTS
            fields[#fields + 1] = 't' .. s % SLOTS
        end
        local old = redis.call('HMGET', w.key, unpack(fields))
        for i = 1, #old, 2 do
            w.r, w.t = w.r - (old[i] or 0), w.t - (old[i + 1] or 0)
        end
        redis.call('HDEL', w.key, unpack(fields))
    end
    w.at = math.max(to, w.at > slot and 0 or w.at)
end

local function add(w, kind, s, n)
    w[kind] = w[kind] + n
    redis.call('HINCRBY', w.key, kind .. s % SLOTS, decimal(n))
end

-- (6), (9) The most that can have been given and forgotten.
local function forgotten(w, kind)
    local limit = w.limit[kind]
    local most = limit
    if bounded and (kind == 'r' or not ring.big) then
        local paced = math.ceil((LOSS_MS + BEAT_MS + SLOT_MS) * limit / span)
        local one = kind == 'r' and 1 or NEED_MAX
        most = math.min(limit, math.max(math.ceil(limit / 2), w[kind]) + paced + one)
    end
    return math.max(0, most - w[kind])
end

local function window(i)
    local a = FIRST.further + (i - 1) * KEY_ARGS
    local k = FIRST.windows + (i - 1) * 4
    local w = {number = i, key = KEYS[k], counts = {KEYS[k + 1], KEYS[k + 2], KEYS[k + 3]},
               used = ARGV[a] == '1',
               limit = {r = tonumber(ARGV[a + 1]), t = tonumber(ARGV[a + 2])},
               caps = {tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4]), tonumber(ARGV[a + 5])}}
    local v = redis.call('HMGET', w.key, 'at', 'r', 't', 'next_r', 'next_t', 'rest')
    w.at, w.r, w.t = tonumber(v[1]) or slot, tonumber(v[2]) or 0, tonumber(v[3]) or 0
    w.next = {r = tonumber(v[4]) or 0, t = tonumber(v[5]) or 0}
    w.rest = tonumber(v[6]) or 0
    if lost then
        advance(w, lost)
        if slot - lost < SLOTS then
            add(w, 'r', lost, forgotten(w, 'r'))
            add(w, 't', lost, forgotten(w, 't'))
        end
    end
    advance(w, slot)
    return w
end

-- Never more than what is known of the slot: it may have been lost.
local function take_back(w, s, requests, tokens)
    local field = s % SLOTS
    local old = s > slot - SLOTS and s <= slot
    local was = old and redis.call('HMGET', w.key, 'r' .. field, 't' .. field) or {0, 0}
    requests = math.min(requests, tonumber(was[1]) or 0)
    if requests > 0 then
        add(w, 'r', s, -requests)
        for period = 1, 3 do
            if s * SLOT_MS >= starts[period] * 1000 then
                count_calls(w, period, math.max(0, calls_of(w, period) - requests))
            end
        end
    end
    if tokens < 0 then
        add(w, 't', old and s or slot, -tokens)
        return
    end
    tokens = math.min(tokens, tonumber(was[2]) or 0)
    if tokens > 0 then
        add(w, 't', s, -tokens)
        w.next.t = w.next.t - tokens * span / math.max(1, w.limit.t)
    end
end

-- (10) What waits on other nodes, and how many tokens the largest of these needs.
local need_most = math.max(runs.head, jobs.head)
runs.line, jobs.line = 0, 0
for field, value in pairs(ring) do
    local node = string.match(field, '^w(.+)$')
    local when, r, j, need = string.match(value, '^(%d+) (%d+) (%d+) (%d+)$')
    local age = when and math.abs(slot - when) or SLOTS
    if node and age >= SLOTS then
        redis.call('HDEL', KEYS.ring, field)
    elseif node and node ~= ARGV.node and age < LINE_SLOTS then
        runs.line, jobs.line = runs.line + r, jobs.line + j
        need_most = math.max(need_most, tonumber(need))
    end
end

-- (5) How many may be given now. What has come free for the largest request that waits is kept.
local function allowed(w, kind, need)
    local limit, each = w.limit[kind], span / w.limit[kind]
    local most = kind == 't' and math.max(need, math.min(need_most, limit)) or need
    w.next[kind] = math.max(w.next[kind], now - SLOT_MS - each * most)
    local paced = math.max(0, math.floor((now - w.next[kind]) / each + 0.001))
    local free = math.max(0, math.ceil(limit / 2) - w[kind])
    return math.max(0, math.min(limit - w[kind], free + paced)), free
end

local function cap_left(w)
    local left = math.huge
    for period = 1, 3 do
        if w.caps[period] >= 0 then
            left = math.min(left, w.caps[period] - calls_of(w, period))
        end
    end
    return math.max(0, left)
end

local reply = {0, 0, 0, 0, 0, 0}

local function spend(w, kind, n, free)
    add(w, kind, slot, n)
    w.next[kind] = w.next[kind] + math.max(0, n - free) * span / w.limit[kind]
end

local function give(w, n, tokens, what)
    local _, free_r = allowed(w, 'r', 1)
    local _, free_t = allowed(w, 't', tokens)
    spend(w, 'r', n, free_r)
    spend(w, 't', tokens, free_t)
    for period = 1, 3 do
        count_calls(w, period, calls_of(w, period) + n)
    end
    w.left = w.left - n
    for _, v in ipairs({w.number, slot, n, tokens, what}) do
        reply[#reply + 1] = v
    end
end

local windows, usable = {}, {}
for i = 1, count do
    local w = window(i)
    windows[i] = w
    if w.used and w.limit.r > 0 and w.limit.t > 0 then
        reply[2], reply[3] = reply[2] + w.r, reply[3] + w.limit.r
        reply[4], reply[5] = reply[4] + w.t, reply[5] + w.limit.t
        if w.rest > now then
            reply[6] = reply[6] + 1
        elseif open then
            usable[#usable + 1] = w
        end
    end
end
for a = FIRST.further + count * KEY_ARGS, #ARGV, 4 do
    take_back(windows[tonumber(ARGV[a])], tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2]),
              tonumber(ARGV[a + 3]))
end

-- How many requests fit in, the first of which has so many tokens.
local function fitting(w, first, each)
    local n = math.min(w.left, (allowed(w, 'r', 1)))
    local tokens = allowed(w, 't', first)
    if n < 1 or tokens < first then
        return 0
    end
    return each > 0 and math.min(n, 1 + math.floor((tokens - first) / each)) or n
end

local limit_r, limit_t = 0, 0
for _, w in ipairs(usable) do
    w.left = cap_left(w)
    limit_r, limit_t = limit_r + w.limit.r, limit_t + w.limit.t
    if large > 0 and w.t == 0 and w.left >= 1 and allowed(w, 'r', 1) >= 1 then
        give(w, 1, large, LARGE)
        large = 0
    end
end

local lag = tonumber(ring.lag) or 0
local burst = 1 + limit_r * BURST_SLOTS / MINUTE_SLOTS

local function cost(n, tokens)
    return math.max(n, tokens * limit_r / math.max(1, limit_t))
end

-- How many of a class may be given while the other one waits.
local function quota(c, other_waits)
    if not other_waits then
        return math.huge
    end
    local room = (1 - c.part) * burst + c.ahead * lag
    return room > 0 and math.ceil(room / ((1 - c.part) * cost(1, c.each))) or 0
end

-- Most room first, and by how much there is.
local function serve(c, most)
    local wanted, room = math.min(c.wanted, most), 0
    if wanted == 0 and c == jobs then
        return
    end
    local left, first = wanted, c.head
    for _, w in ipairs(usable) do
        w.fits = fitting(w, first, c.each)
        room = room + w.fits
    end
    table.sort(usable, function(a, b)
        return a.fits > b.fits or (a.fits == b.fits and a.number < b.number)
    end)
    for _, w in ipairs(usable) do
        local n = math.min(left, fitting(w, first, c.each),
                           math.ceil(wanted * w.fits / math.max(1, room)))
        if n >= 1 then
            local tokens = first + (n - 1) * c.each
            give(w, n, tokens, c.what)
            lag = lag - c.ahead * (1 - c.part) * cost(n, tokens)
            left, first = left - n, c.each
            c.given, c.tokens = (c.given or 0) + n, (c.tokens or 0) + tokens
        end
    end
    c.wanted, c.head = c.wanted - (wanted - left), first
end
serve(jobs, quota(jobs, runs.wanted + runs.line > 0))
serve(runs, quota(runs, jobs.wanted + jobs.line > 0))
if runs.wanted + runs.line == 0 then
    serve(jobs, math.huge)
end
if jobs.wanted + jobs.line == 0 then
    lag = math.min(lag, 0)
end
if runs.wanted + runs.line == 0 then
    lag = math.max(lag, 0)
end
redis.call('HSET', KEYS.ring, 'lag', string.format('%.3f', lag), 'w' .. ARGV.node,
           string.format('%.0f %.0f %.0f %.0f', slot, runs.wanted, jobs.wanted, math.max(
               runs.wanted > 0 and runs.head or 0, jobs.wanted > 0 and jobs.head or 0)))
if jobs.given then -- (11)
    local r, t, when = string.match(ring.jobs or '', '^(%S+) (%S+) (%d+)$')
    local kept = when and math.exp(-math.abs(now - when) / (SLOT_MS * MINUTE_SLOTS)) or 0
    redis.call('HSET', KEYS.ring, 'jobs', string.format('%.3f %.3f %.0f', (r or 0) * kept +
               jobs.given, (t or 0) * kept + jobs.tokens, now))
end
local best = usable[1]
if runs.wanted + jobs.wanted == 0 and extra > 0 and best and best.left >= 4 * extra then
    local _, free_r = allowed(best, 'r', 1) -- far from all limits only
    local _, free_t = allowed(best, 't', runs.each)
    if free_r >= 4 * extra and free_t >= 4 * extra * runs.each then
        give(best, extra, extra * runs.each, ANY)
    end
end

local wait = 1000
for _, w in ipairs(windows) do
    redis.call('HSET', w.key, 'at', decimal(w.at), 'r', decimal(w.r), 't', decimal(w.t), 'next_r',
               string.format('%.3f', w.next.r), 'next_t', string.format('%.3f', w.next.t), 'rest',
               decimal(w.rest))
    if w.used and w.rest > now then
        wait = math.min(wait, w.rest - now)
    elseif w.used and w.left == 0 then
        wait = math.min(wait, (starts[1] + 60) * 1000 - now)
    elseif w.used then
        local boundary = (slot + 1) * SLOT_MS - now
        local head = runs.wanted > 0 and runs.head or jobs.head
        local due = math.max(w.next.r + span / w.limit.r, w.next.t + head * span / w.limit.t) - now
        wait = math.min(wait, due > 0 and due < boundary and due or boundary)
    end
end
reply[1] = math.max(1, math.ceil(wait))
return reply

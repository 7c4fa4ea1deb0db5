-- A node reports how many AI calls it makes for one user, and claims more. All living nodes
-- together never make more calls at once for one user than the user's permission. A call is a
-- worker of a run, or a job: these are the two parts.
--   key workers
--   arg permission
--   arg node: its incarnation
--   arg part: runs, or jobs
--   arg node_count: how many nodes live
--   args nodes_and_claims: the incarnations of the living nodes; then three for each run, or for
--        all jobs: its id (jobs), the calls that the node makes, and how many it wants
-- workers is a hash of one user, by run and node: how many, '@', and when they were claimed, on the
-- clock of Redis. Nodes claim again in every round, so an old claim of a node that is not among the
-- living is removed. A fresh one counts: its node may have joined after the caller's heartbeat.
-- Jobs are claimed by 'jobs:<node>', at least every RENEWED_MS: what an older Redis brings back
-- goes by itself.
--
-- A part that wants more than it gets leaves a note, '?<part>', with the time. While that is fresh,
-- the other part has no more than its own share: of five calls one is for jobs, of fewer also one.
-- A single call changes sides: '?turn' has the part whose turn it is, and when that part got the
-- call (0: not yet); it may keep it for TURN_MS. Runs that have too many are told so, and end
-- workers after the paper in hand; a job ends by itself.
-- Returns how many the node may have, for each run, or of jobs: less than it has only in that case,
-- and these count until they have ended. Idempotent.
local FRESH_MS, RENEWED_MS, NOTE_MS = 2000, 15000, 15000
local TURN_MS = {runs = 20000, jobs = 5000}
local permission, count = tonumber(ARGV.permission), tonumber(ARGV.node_count)
local first = FIRST.nodes_and_claims + count
local mine, other = ARGV.part, ARGV.part == 'runs' and 'jobs' or 'runs'
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local living, total, notes = {[ARGV.node] = true}, {runs = 0, jobs = 0}, {}
for i = FIRST.nodes_and_claims, first - 1 do
    living[ARGV[i]] = true
end
local all = redis.call('HGETALL', KEYS.workers)
for i = 1, #all, 2 do
    local note = string.match(all[i], '^%?(%a+)$')
    local of, node = string.match(all[i], '^(.*):([^:]*)$')
    local calls, at = string.match(all[i + 1], '^(%d+)@(%d+)$')
    local part = of == 'jobs' and 'jobs' or 'runs'
    local age = at and math.abs(now - tonumber(at))
    local counts = age and (living[node] or age < FRESH_MS) and
                   (part == 'runs' or age < RENEWED_MS)
    if note then
        notes[note] = all[i + 1]
    elseif not counts or (node == ARGV.node and part == mine) then
        redis.call('HDEL', KEYS.workers, all[i])
    else
        total[part] = total[part] + tonumber(calls)
    end
end
local wanted = 0
for i = first, #ARGV, 3 do
    total[mine] = total[mine] + tonumber(ARGV[i + 1])
    wanted = wanted + math.max(0, ARGV[i + 2] - ARGV[i + 1])
end

-- Of a permission of one: whose turn is it?
local function turn()
    local part, since = string.match(notes.turn or '', '^(%a+)@(%d+)$')
    since = tonumber(since)
    if not part then
        part, since = mine, 0
    end
    if part == mine and since == 0 and total[other] == 0 then
        since = now
    elseif part == mine and since > 0 and math.abs(now - since) >= TURN_MS[mine] then
        part, since = other, 0
    end
    redis.call('HSET', KEYS.workers, '?turn', string.format('%s@%.0f', part, since))
    return part
end
local function share_of_jobs()
    if permission == 1 then
        return turn() == 'jobs' and 1 or 0
    end
    return math.min(permission, math.max(1, math.floor(permission / 5)))
end
local most, over = permission - total[other], 0
if notes[other] and math.abs(now - notes[other]) < NOTE_MS then
    local jobs = share_of_jobs()
    local share = mine == 'jobs' and jobs or permission - jobs
    most = math.min(most, share)
    over = mine == 'runs' and math.max(0, total.runs - share) or 0
end

local granted = {}
for i = first, #ARGV, 3 do
    local has, wants = tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
    local more = math.max(0, math.min(wants - has, most - total[mine]))
    local fewer = math.min(has, over)
    total[mine], wanted, over = total[mine] + more, wanted - more, over - fewer
    granted[#granted + 1] = has + more - fewer
    if has + more > 0 then
        redis.call('HSET', KEYS.workers, ARGV[i] .. ':' .. ARGV.node,
                   string.format('%d@%d', has + more, now))
    end
end
if wanted > 0 then
    redis.call('HSET', KEYS.workers, '?' .. mine, string.format('%.0f', now))
elseif notes[mine] then
    redis.call('HDEL', KEYS.workers, '?' .. mine)
end
return granted

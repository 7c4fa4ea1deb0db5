-- A node reports how many workers it has for the runs of one user, and claims more. All living
-- nodes together never have more workers for one user than the user's permission.
--   key workers
--   arg permission
--   arg node: its incarnation
--   arg node_count: how many nodes live
--   args nodes_and_runs: the incarnations of the living nodes; then three for each run: its id, the
--        workers that the node has, and how many it wants
-- workers is a hash of one user, by run and node: how many, '@', and when they were claimed, on the
-- clock of Redis. Nodes claim again in every round, so an old claim of a node that is not among the
-- living is removed. A fresh one counts: its node may have joined after the caller's heartbeat.
-- Returns how many the node may have, for each run: never less than it has. Idempotent.
local FRESH_MS = 2000
local permission, count = tonumber(ARGV.permission), tonumber(ARGV.node_count)
local first_run = FIRST.nodes_and_runs + count
local living, total = {}, 0
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = FIRST.nodes_and_runs, first_run - 1 do
    living[ARGV[i]] = true
end
local all = redis.call('HGETALL', KEYS.workers)
for i = 1, #all, 2 do
    local node = string.match(all[i], '[^:]*$')
    local workers, at = string.match(all[i + 1], '^(%d+)@(%d+)$')
    local fresh = at and math.abs(now - tonumber(at)) < FRESH_MS
    if node == ARGV.node or not workers or not (living[node] or fresh) then
        redis.call('HDEL', KEYS.workers, all[i])
    else
        total = total + tonumber(workers)
    end
end
for i = first_run, #ARGV, 3 do
    total = total + tonumber(ARGV[i + 1])
end
local granted = {}
for i = first_run, #ARGV, 3 do
    local has, wants = tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
    local more = math.max(0, math.min(wants - has, permission - total))
    total = total + more
    granted[#granted + 1] = has + more
    if has + more > 0 then
        redis.call('HSET', KEYS.workers, ARGV[i] .. ':' .. ARGV.node,
                   string.format('%d@%d', has + more, now))
    end
end
return granted

-- What Redis has of the costs of a user's runs, at one moment.
--   key ledger
--   key queue
--   keys statuses: of the runs
--   arg billed_seq: of the row in MySQL
--   args qids: of the same runs
-- Returns {synced, cost, waiting, cost, waiting, ...}: the last record that is trimmed, and for
-- each run its cost so far, -1 where it is not known, and what its records after billed_seq cost.
-- Changes nothing.
local SLICE = 1000
local billed = tonumber(ARGV.billed_seq)
local waiting = {}
for first = 0, redis.call('LLEN', KEYS.queue) - 1, SLICE do
    for _, text in ipairs(redis.call('LRANGE', KEYS.queue, first, first + SLICE - 1)) do
        local fine, record = pcall(cjson.decode, text)
        local seq = fine and type(record) == 'table' and tonumber(record.seq)
        if seq and seq > billed and record.qid then
            waiting[record.qid] = (waiting[record.qid] or 0) + (tonumber(record.cost) or 0)
        end
    end
end
local out = {tonumber(redis.call('HGET', KEYS.ledger, 'synced') or 0)}
for i = FIRST.qids, #ARGV do
    local was = redis.call('HMGET', KEYS[FIRST.statuses + i - FIRST.qids], 'state', 'cost')
    out[#out + 1] = was[1] and tonumber(was[2] or 0) or -1
    out[#out + 1] = waiting[ARGV[i]] or 0
end
return out

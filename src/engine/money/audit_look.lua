-- What Redis has of a user's money, at one moment.
-- KEYS: the balance, the ledger, the billing queue of one user.
-- ARGV: billed_seq of MySQL.
-- Returns {loaded, balance, seq, synced, move, records, cents}: loaded 1 if the balance is one of this
-- run of the server; records after billed_seq and what they cost. Changes nothing.
local SLICE = 1000
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local was = redis.call('HMGET', KEYS[2], 'run', 'seq', 'synced', 'move')
local balance = redis.call('GET', KEYS[1])
local billed = tonumber(ARGV[1])
local records, cents = 0, 0
for first = 0, redis.call('LLEN', KEYS[3]) - 1, SLICE do
    for _, text in ipairs(redis.call('LRANGE', KEYS[3], first, first + SLICE - 1)) do
        local record = cjson.decode(text)
        if record.seq > billed then
            records = records + 1
            cents = cents + record.cost
        end
    end
end
return {balance and was[1] == run and 1 or 0, tonumber(balance or 0), tonumber(was[2] or 0),
        tonumber(was[3] or 0), tonumber(was[4] or 0), records, cents}

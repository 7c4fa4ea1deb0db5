-- What Redis has of a user's money, at one moment.
--   key balance
--   key ledger
--   key queue
--   key aside
--   arg billed_seq: of the row in MySQL
-- Returns {loaded, balance, seq, synced, move, records, cents, aside}: loaded 1 if the balance is
-- one of this generation; records after billed_seq and what they cost: nothing, where one cannot be
-- read; how many are aside. Changes nothing.
local SLICE = 1000
local was = redis.call('HMGET', KEYS.ledger, 'run', 'seq', 'synced', 'move')
local balance = redis.call('GET', KEYS.balance)
local billed = tonumber(ARGV.billed_seq)
local records, cents = 0, 0
for first = 0, redis.call('LLEN', KEYS.queue) - 1, SLICE do
    for _, text in ipairs(redis.call('LRANGE', KEYS.queue, first, first + SLICE - 1)) do
        local fine, record = pcall(cjson.decode, text)
        local seq = fine and type(record) == 'table' and tonumber(record.seq)
        if not seq or seq > billed then
            records = records + 1
            cents = cents + (seq and tonumber(record.cost) or 0)
        end
    end
end
return {balance and was[1] == GENERATION and 1 or 0, tonumber(balance or 0), tonumber(was[2] or 0),
        tonumber(was[3] or 0), tonumber(was[4] or 0), records, cents,
        redis.call('LLEN', KEYS.aside)}

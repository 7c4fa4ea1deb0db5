-- Takes money from a user, and appends the record of it with the next seq.
--   key balance
--   key ledger
--   key queue
--   key deductions
--   arg generation: of the ledger, as read before MySQL was asked
--   arg synced: of the ledger, then; '' where absent
--   arg cents
--   arg request_id
--   arg text: of the record, see record.c
--   arg sum: of the text
-- A request that is taken already has its id in the deductions until its record is in MySQL; after
-- that MySQL knows it. A node that asked MySQL before, and comes here after, could take it twice:
-- so the record is refused if any record was trimmed since.
-- Returns {status, balance, seq}. 1: taken. 2: was taken already, with that seq. 0: too little is
-- left. -1: there is no balance of this generation. -2: a record was trimmed or the ledger was
-- loaded anew since; look again. Only 1 changes anything. Idempotent.
local was = redis.call('HMGET', KEYS.ledger, 'run', 'synced')
local balance = redis.call('GET', KEYS.balance)
if not balance or was[1] ~= GENERATION then
    return {-1, 0, 0}
end
if GENERATION ~= ARGV.generation or (was[2] or '') ~= ARGV.synced then
    return {-2, tonumber(balance), 0}
end
local taken = redis.call('HGET', KEYS.deductions, ARGV.request_id)
if taken then
    return {2, tonumber(balance), tonumber(taken)}
end
if tonumber(balance) < tonumber(ARGV.cents) then
    return {0, tonumber(balance), 0}
end
local left = redis.call('DECRBY', KEYS.balance, ARGV.cents)
local seq = redis.call('HINCRBY', KEYS.ledger, 'seq', 1)
local number = string.format('%.0f', seq)
local sum = bit.tohex(bit.bxor(tonumber(ARGV.sum), seq % 4294967296))
redis.call('RPUSH', KEYS.queue, '{"seq":' .. number .. ARGV.text .. ',"sum":"' .. sum .. '"}')
redis.call('HSET', KEYS.deductions, ARGV.request_id, number)
return {1, left, seq}

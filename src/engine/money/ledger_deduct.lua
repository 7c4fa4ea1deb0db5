-- Takes money from a user, for any number of requests, and appends a record of each with the next
-- seq.
--   key balance
--   key ledger
--   key queue
--   key deductions
--   arg generation: of the ledger, as read before MySQL was asked
--   arg synced: of the ledger, then; '' where absent
--   args requests: four for each: request_id, cents, text of the record (see record.c), sum of the
--     text; no request_id twice
-- A request that is taken already has its id in the deductions until its record is in MySQL; after
-- that MySQL knows it. A node that asked MySQL before, and comes here after, could take it twice:
-- so all are refused if any record was trimmed since.
-- Returns a status for each. 1: taken. 2: was taken already. 0: too little is left for it. -1:
-- there is no balance of this generation. -2: a record was trimmed or the ledger was loaded anew
-- since; look again. Only 1 changes anything. Idempotent.
local was = redis.call('HMGET', KEYS.ledger, 'run', 'synced')
local balance = redis.call('GET', KEYS.balance)
local refused
if not balance or was[1] ~= GENERATION then
    refused = -1
elseif GENERATION ~= ARGV.generation or (was[2] or '') ~= ARGV.synced then
    refused = -2
end
local ids, status = {}, {}
for i = FIRST.requests, #ARGV, 4 do
    ids[#ids + 1] = ARGV[i]
    status[#status + 1] = refused
end
if refused then
    return status
end
local left, sum, count = tonumber(balance), 0, 0
for n, taken in ipairs(redis.call('HMGET', KEYS.deductions, unpack(ids))) do
    local cents = tonumber(ARGV[FIRST.requests + (n - 1) * 4 + 1])
    if taken then
        status[n] = 2
    elseif left - sum < cents then
        status[n] = 0
    else
        status[n] = 1
        sum = sum + cents
        count = count + 1
    end
end
if count == 0 then
    return status
end
local seq = redis.call('HINCRBY', KEYS.ledger, 'seq', count) - count
local records, marks = {}, {}
for n, id in ipairs(ids) do
    if status[n] == 1 then
        local i = FIRST.requests + (n - 1) * 4
        seq = seq + 1
        local number = string.format('%.0f', seq)
        local check = bit.tohex(bit.bxor(tonumber(ARGV[i + 3]), seq % 4294967296))
        records[#records + 1] = '{"seq":' .. number .. ARGV[i + 2] .. ',"sum":"' .. check .. '"}'
        marks[#marks + 1] = id
        marks[#marks + 1] = number
    end
end
redis.call('DECRBY', KEYS.balance, string.format('%.0f', sum))
redis.call('RPUSH', KEYS.queue, unpack(records))
redis.call('HSET', KEYS.deductions, unpack(marks))
return status

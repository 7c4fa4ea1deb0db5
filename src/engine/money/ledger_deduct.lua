-- Takes money from a user, and appends the record of it with the next seq.
-- A request that is taken already has its id in the deductions until its record is in MySQL; after
-- that MySQL knows it. Whoever asked MySQL before, and comes here after, could take it twice: so the
-- record is refused if any record was trimmed since.
-- KEYS: the balance, the ledger, the billing queue, the deductions of one user.
-- ARGV: run and synced of the ledger, as read before MySQL was asked ('' where absent); cents; the
--       request id; the record as JSON from after its opening brace and seq.
-- Returns {status, balance, seq}. 1: taken. 2: was taken already, with that seq. 0: too little is
-- left. -1: there is no balance of this run of the server. -2: a record was trimmed or the ledger was
-- loaded anew since; look again. Nothing was changed but for 1. Safe to repeat.
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local was = redis.call('HMGET', KEYS[2], 'run', 'synced')
local balance = redis.call('GET', KEYS[1])
if not balance or was[1] ~= run then
    return {-1, 0, 0}
end
if run ~= ARGV[1] or (was[2] or '') ~= ARGV[2] then
    return {-2, tonumber(balance), 0}
end
local taken = redis.call('HGET', KEYS[4], ARGV[4])
if taken then
    return {2, tonumber(balance), tonumber(taken)}
end
if tonumber(balance) < tonumber(ARGV[3]) then
    return {0, tonumber(balance), 0}
end
local left = redis.call('DECRBY', KEYS[1], ARGV[3])
local seq = redis.call('HINCRBY', KEYS[2], 'seq', 1)
local number = string.format('%.0f', seq)
redis.call('RPUSH', KEYS[3], '{"seq":' .. number .. ',' .. ARGV[5])
redis.call('HSET', KEYS[4], ARGV[4], number)
return {1, left, seq}

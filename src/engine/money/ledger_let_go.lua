-- Drops a user's balance, if MySQL has all of it. What stays is the ledger with its counters, without
-- a run: a loader that read the row before a later move or record must find them and be refused,
-- however slow it is.
-- KEYS: the balance, the ledger, the billing queue, the deductions of one user.
-- ARGV: the row's balance in cents, billed_seq and move_no.
-- Returns {status, balance}. 1: gone, or was not there. 0: a record or a move is under way. -1: nothing
-- is under way, and yet the balance is another one. Nothing was changed then. Safe to repeat.
if redis.call('EXISTS', KEYS[3], KEYS[4]) > 0 then
    return {0, 0}
end
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local was = redis.call('HMGET', KEYS[2], 'run', 'seq', 'move')
local balance = redis.call('GET', KEYS[1])
if balance and was[1] == run then
    if tonumber(was[2]) ~= tonumber(ARGV[2]) or tonumber(was[3]) ~= tonumber(ARGV[3]) then
        return {0, tonumber(balance)}
    end
    if tonumber(balance) ~= tonumber(ARGV[1]) then
        return {-1, tonumber(balance)}
    end
end
-- A balance of an earlier run counts for nothing: whoever needs it loads it anew.
redis.call('DEL', KEYS[1])
redis.call('HDEL', KEYS[2], 'run')
return {1, 0}

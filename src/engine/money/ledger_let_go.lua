-- Drops a user's balance, if MySQL has all of it. What stays is the ledger with its counters,
-- without a generation: a loader that read the row before a later move or record must find them and
-- be refused, however slow it is.
--   key balance
--   key ledger
--   key queue
--   key deductions
--   arg cents: the balance of the row in MySQL
--   arg billed_seq: of the row
--   arg move_no: of the row
-- Returns {status, balance}. 1: gone, or was not there. 0: a record or a move is under way. -1:
-- nothing is under way, and yet the balance is another one. 0 and -1 change nothing. Idempotent.
if redis.call('EXISTS', KEYS.queue, KEYS.deductions) > 0 then
    return {0, 0}
end
local was = redis.call('HMGET', KEYS.ledger, 'run', 'seq', 'move')
local balance = redis.call('GET', KEYS.balance)
if balance and was[1] == GENERATION then
    if tonumber(was[2]) ~= tonumber(ARGV.billed_seq) or
       tonumber(was[3]) ~= tonumber(ARGV.move_no) then
        return {0, tonumber(balance)}
    end
    if tonumber(balance) ~= tonumber(ARGV.cents) then
        return {-1, tonumber(balance)}
    end
end
-- A balance of an earlier generation counts for nothing: it is loaded anew when it is needed.
redis.call('DEL', KEYS.balance)
redis.call('HDEL', KEYS.ledger, 'run')
return {1, 0}

-- Puts a user's balance into Redis, from a row of MySQL that is not older than what Redis knows.
--   key balance
--   key ledger
--   key queue
--   key aside
--   arg generation: before the row was read
--   arg cents: the balance of the row
--   arg billed_seq: of the row
--   arg move_no: of the row
--   arg repaired: up to which record lost charges were made good in this generation; 0: none were
-- A balance counts only if it was loaded in this generation: one that came back from disk may be
-- older than MySQL, so it is made anew. Where MySQL has records that this Redis never made, or has
-- lost, their charges may lack results in Redis: ledger_repair must run first.
-- Returns {status, balance, move, synced, seq}. Status 1: the balance is there, as it was or
-- loaded. 0: the row is older than move or synced, read it again; or billed_seq is more than seq,
-- repair it first. -1: Redis has another generation than before. -2: the balance would be
-- below zero. -3: a record cannot be read, or is aside. All but 1 change nothing. Idempotent.
local was = redis.call('HMGET', KEYS.ledger, 'run', 'seq', 'synced', 'move')
local seq, synced, move = tonumber(was[2] or 0), tonumber(was[3] or 0), tonumber(was[4] or 0)
if GENERATION ~= ARGV.generation then
    return {-1, 0, move, synced, seq}
end
local balance = redis.call('GET', KEYS.balance)
if balance and was[1] == GENERATION then
    return {1, tonumber(balance), move, synced, seq}
end
local left = tonumber(ARGV.cents)
local billed, move_no = tonumber(ARGV.billed_seq), tonumber(ARGV.move_no)
if move_no < move or billed < synced or (billed > seq and billed > tonumber(ARGV.repaired)) then
    return {0, 0, move, synced, seq}
end
if redis.call('EXISTS', KEYS.aside) == 1 then
    return {-3, 0, move, synced, seq}
end
local SLICE = 1000
local last = billed
for first = 0, redis.call('LLEN', KEYS.queue) - 1, SLICE do
    for _, text in ipairs(redis.call('LRANGE', KEYS.queue, first, first + SLICE - 1)) do
        local fine, record = pcall(cjson.decode, text)
        if not fine or type(record) ~= 'table' or not tonumber(record.seq) or
           not tonumber(record.cost) then
            return {-3, 0, move, synced, seq}
        end
        if record.seq > billed then
            left = left - record.cost
        end
        last = math.max(last, record.seq)
    end
end
if left < 0 then
    return {-2, left, move, synced, seq}
end
redis.call('SET', KEYS.balance, string.format('%.0f', left))
redis.call('HSET', KEYS.ledger, 'run', GENERATION, 'move', ARGV.move_no,
           'seq', string.format('%.0f', math.max(seq, last)))
return {1, left, move_no, synced, seq}

-- Puts a user's balance into Redis, from a row of MySQL that is not older than what Redis knows.
-- A balance counts only if it was loaded in this run of the server: one that came back from disk may
-- be older than MySQL, so it is made anew. Where MySQL has records that this Redis never made, or
-- has forgotten, charges may stand there without their results: those must be made good first.
-- KEYS: the balance, the ledger, the billing queue of one user.
-- ARGV: the run id of the server before the row was read; the row's balance in cents, billed_seq
--       and move_no; up to which record lost charges were made good in this run, 0: none were.
-- Returns {status, balance, move, synced, seq}. Status 1: the balance is there, as it was or loaded.
-- 0: the row is older than move or synced, read it again; or billed_seq is more than seq, repair it
-- first. -1: the server is another one than when
-- the row was read. -2: the balance would be below zero. Nothing was changed then. Safe to repeat.
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local was = redis.call('HMGET', KEYS[2], 'run', 'seq', 'synced', 'move')
local seq, synced, move = tonumber(was[2] or 0), tonumber(was[3] or 0), tonumber(was[4] or 0)
if run ~= ARGV[1] then
    return {-1, 0, move, synced, seq}
end
local balance = redis.call('GET', KEYS[1])
if balance and was[1] == run then
    return {1, tonumber(balance), move, synced, seq}
end
local left, billed, move_no = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
if move_no < move or billed < synced or (billed > seq and billed > tonumber(ARGV[5])) then
    return {0, 0, move, synced, seq}
end
local SLICE = 1000
local last = billed
for first = 0, redis.call('LLEN', KEYS[3]) - 1, SLICE do
    for _, text in ipairs(redis.call('LRANGE', KEYS[3], first, first + SLICE - 1)) do
        local record = cjson.decode(text)
        if record.seq > billed then
            left = left - record.cost
        end
        last = math.max(last, record.seq)
    end
end
if left < 0 then
    return {-2, left, move, synced, seq}
end
redis.call('SET', KEYS[1], string.format('%.0f', left))
redis.call('HSET', KEYS[2], 'run', run, 'move', ARGV[4],
           'seq', string.format('%.0f', math.max(seq, last)))
return {1, left, move_no, synced, seq}

-- Drops the records of a user that are in MySQL: from the head, by their seq and not by their count,
-- so that two who have written the same ones drop none twice.
-- KEYS: the ledger, the billing queue, the deductions of one user.
-- ARGV: billed_seq.
-- Returns how many records are left. Safe to repeat, and late.
local SLICE = 1000
local billed = tonumber(ARGV[1])
local gone
repeat
    gone = 0
    for _, text in ipairs(redis.call('LRANGE', KEYS[2], 0, SLICE - 1)) do
        local record = cjson.decode(text)
        if record.seq > billed then
            break
        end
        gone = gone + 1
        if record.request_id then
            redis.call('HDEL', KEYS[3], record.request_id)
        end
    end
    redis.call('LTRIM', KEYS[2], gone, -1)
until gone < SLICE
if billed > tonumber(redis.call('HGET', KEYS[1], 'synced') or 0) then
    redis.call('HSET', KEYS[1], 'synced', ARGV[1])
end
return redis.call('LLEN', KEYS[2])

-- Drops the records of a user that are in MySQL: from the head, by their seq and not by their count,
-- so that two who have written the same ones drop none twice.
-- KEYS: the ledger, the billing queue, the deductions of one user.
-- ARGV: billed_seq.
-- Returns how many records are left. Safe to repeat, and late.
local SLICE = 1000
local billed = tonumber(ARGV[1])

-- The seq grows from record to record, mostly by one: where the one stands that has billed_seq, all
-- before it go, too. Nil: it is not there, and they must be counted.
local function count_ahead()
    local first = redis.call('LINDEX', KEYS[2], 0)
    local place = first and billed - cjson.decode(first).seq
    if not place or place < 0 then
        return 0
    end
    local last = redis.call('LINDEX', KEYS[2], string.format('%.0f', place))
    return last and cjson.decode(last).seq == billed and place + 1 or nil
end

-- Deductions must be found among them. Else nothing of a record is needed but its seq.
local known = redis.call('EXISTS', KEYS[3]) == 0 and count_ahead() or nil
if known and known > 0 then
    redis.call('LTRIM', KEYS[2], string.format('%.0f', known), -1)
end
local gone = known and 0 or SLICE
while gone == SLICE do
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
end
if billed > tonumber(redis.call('HGET', KEYS[1], 'synced') or 0) then
    redis.call('HSET', KEYS[1], 'synced', ARGV[1])
end
return redis.call('LLEN', KEYS[2])

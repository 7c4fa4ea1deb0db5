-- Drops the records of a user that are in MySQL: from the head, by their seq and not by their
-- count, so that two nodes that have written the same records drop none twice.
--   key ledger
--   key queue
--   key deductions
--   arg billed_seq
-- Returns how many records are left. Idempotent, also when it comes late.
local SLICE = 1000
local billed = tonumber(ARGV.billed_seq)

-- How many records go. The seq grows from record to record, mostly by one: where the record with
-- billed_seq stands, all before it go, too. Nil: it is not there, and they must be counted.
local function count_ahead()
    local first = redis.call('LINDEX', KEYS.queue, 0)
    local place = first and billed - cjson.decode(first).seq
    if not place or place < 0 then
        return 0
    end
    local last = redis.call('LINDEX', KEYS.queue, string.format('%.0f', place))
    return last and cjson.decode(last).seq == billed and place + 1 or nil
end

-- Deductions must be found among them. Else nothing of a record is needed but its seq.
local known = redis.call('EXISTS', KEYS.deductions) == 0 and count_ahead() or nil
if known and known > 0 then
    redis.call('LTRIM', KEYS.queue, string.format('%.0f', known), -1)
end
local gone = known and 0 or SLICE
while gone == SLICE do
    gone = 0
    for _, text in ipairs(redis.call('LRANGE', KEYS.queue, 0, SLICE - 1)) do
        local record = cjson.decode(text)
        if record.seq > billed then
            break
        end
        gone = gone + 1
        if record.request_id then
            redis.call('HDEL', KEYS.deductions, record.request_id)
        end
    end
    redis.call('LTRIM', KEYS.queue, gone, -1)
end
if billed > tonumber(redis.call('HGET', KEYS.ledger, 'synced') or 0) then
    redis.call('HSET', KEYS.ledger, 'synced', ARGV.billed_seq)
end
return redis.call('LLEN', KEYS.queue)

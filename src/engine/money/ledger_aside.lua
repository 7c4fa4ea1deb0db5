-- Puts a record aside that cannot be read. One that costs nothing takes its place, with its seq;
-- but where the records beside it leave no number for it, it was none, and nothing does. The user
-- is closed to charges: no balance is loaded while a record is aside.
--   key ledger
--   key queue
--   key aside
--   arg generation: in which it was read
--   arg synced: of the ledger, then
--   arg place: in the queue
--   arg record
--   arg before: seq of the record before it; 0: none
--   arg after: seq of the next one that can be read; 0: none
--   arg distance: to that one
--   arg text: of the record in its place, see record.c
--   arg sum: of the text
-- Returns 1, or 0: it is not there any more. Idempotent.
if GENERATION ~= ARGV.generation or
   tonumber(redis.call('HGET', KEYS.ledger, 'synced') or 0) ~= tonumber(ARGV.synced) or
   redis.call('LINDEX', KEYS.queue, ARGV.place) ~= ARGV.record then
    return 0
end
local before, after, distance = tonumber(ARGV.before), tonumber(ARGV.after), tonumber(ARGV.distance)
if after == 0 then
    after = tonumber(redis.call('HGET', KEYS.ledger, 'seq') or 0) + 1
    distance = redis.call('LLEN', KEYS.queue) - tonumber(ARGV.place)
end
local seq = before > 0 and before + 1 or after - distance
redis.call('RPUSH', KEYS.aside, ARGV.record)
redis.call('HDEL', KEYS.ledger, 'run')
if seq > 0 and seq + distance <= after then
    local number = string.format('%.0f', seq)
    local sum = bit.tohex(bit.bxor(tonumber(ARGV.sum), seq % 4294967296))
    redis.call('LSET', KEYS.queue, ARGV.place, '{"seq":' .. number .. ARGV.text .. ',"sum":"' ..
               sum .. '"}')
else
    redis.call('LSET', KEYS.queue, ARGV.place, 'gone')
    redis.call('LREM', KEYS.queue, 1, 'gone')
end
return 1

-- Rests an API key for some time, on all nodes; never shortens a rest. Records the reason and the
-- time.
--   key window: of the API key
--   key errors: the last one of each API key
--   arg ms
--   arg id: of the API key
--   arg error: what is noted
-- Returns nothing of use. Idempotent.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local rest = tonumber(redis.call('HGET', KEYS.window, 'rest') or 0)
redis.call('HSET', KEYS.window, 'rest', string.format('%.0f', math.max(rest, now + ARGV.ms)))
redis.call('HSET', KEYS.errors, ARGV.id, string.format('%.0f ', now) .. ARGV.error)
return 0

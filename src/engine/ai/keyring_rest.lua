-- A key rests for some time, on all nodes; never for less than it was to rest anyway. Why is noted, with the time.
-- KEYS: the window of the key; the last errors of keys. ARGV: milliseconds; number of the key; what is noted.
-- Returns nothing of use. Safe to repeat.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local rest = tonumber(redis.call('HGET', KEYS[1], 'rest') or 0)
redis.call('HSET', KEYS[1], 'rest', string.format('%.0f', math.max(rest, now + ARGV[1])))
redis.call('HSET', KEYS[2], ARGV[2], string.format('%.0f ', now) .. ARGV[3])
return 0

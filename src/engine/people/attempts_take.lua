-- Counts an attempt for all of its subjects; for none, if one of them has had too many.
--   key index
--   keys subjects: of the sys group
--   arg id: of the attempt
--   arg most: how many are allowed in a window
--   arg window_ms
-- Returns 0: counted. More: in so many milliseconds there is room. Idempotent by its id.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local id, most, window = ARGV.id, tonumber(ARGV.most), tonumber(ARGV.window_ms)
local wait = 0
for i = FIRST.subjects, #KEYS do
    redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now - window)
    -- After the clock was set back, attempts of the future would lock the subject out until then.
    redis.call('ZREMRANGEBYSCORE', KEYS[i], now + window, '+inf')
    if not redis.call('ZSCORE', KEYS[i], id) and redis.call('ZCARD', KEYS[i]) >= most then
        local leaves_next = redis.call('ZRANGE', KEYS[i], -most, -most, 'WITHSCORES')
        wait = math.max(wait, math.min(leaves_next[2] + window - now, window))
    end
end
if wait > 0 then
    return wait
end
for i = FIRST.subjects, #KEYS do
    redis.call('ZADD', KEYS[i], now, id)
    redis.call('ZADD', KEYS.index, now, KEYS[i])
end
return 0

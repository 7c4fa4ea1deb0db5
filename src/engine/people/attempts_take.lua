-- Counts an attempt for all of its subjects; for none, if one of them has had too many.
-- KEYS: the index, then the subjects. Of the sys group.
-- ARGV: the attempt's id, how many are allowed, in how many milliseconds.
-- Returns 0: counted. More: in so many milliseconds there is room. A repeat counts nothing more.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local id, most, window = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local wait = 0
for i = 2, #KEYS do
    redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now - window)
    -- A clock that was set back would else lock somebody out until it is there again.
    redis.call('ZREMRANGEBYSCORE', KEYS[i], now + window, '+inf')
    if not redis.call('ZSCORE', KEYS[i], id) and redis.call('ZCARD', KEYS[i]) >= most then
        local leaves_next = redis.call('ZRANGE', KEYS[i], -most, -most, 'WITHSCORES')
        wait = math.max(wait, math.min(leaves_next[2] + window - now, window))
    end
end
if wait > 0 then
    return wait
end
for i = 2, #KEYS do
    redis.call('ZADD', KEYS[i], now, id)
    redis.call('ZADD', KEYS[1], now, KEYS[i])
end
return 0

-- Counts an attempt for all of its subjects; for none, if one of them has had too many.
--   key index
--   key known: exists if an attempt with the same first subject was right lately; then only the
--     first subject can refuse: what others did elsewhere, or to others, does not matter
--   keys subjects: of the sys group
--   arg id: of the attempt
--   arg window_ms
--   arg slow_ms: the first delay of a subject that is slowed down; each one doubles it
--   arg slow_most_ms: the longest
--   args limits: of each subject, how many are allowed in a window; -N: the first N, then slowly
-- Returns 0: counted. More: in so many milliseconds there is room. Idempotent by its id.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local id, window = ARGV.id, tonumber(ARGV.window_ms)

-- How long a subject with so many attempts has to wait.
local function wait_of(key, limit)
    local most = math.abs(limit)
    local count = redis.call('ZCARD', key)
    if count < most or redis.call('ZSCORE', key, id) then
        return 0
    end
    if limit < 0 then
        local delay = math.min(ARGV.slow_ms * 2 ^ (count - most), tonumber(ARGV.slow_most_ms))
        return redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2] + delay - now
    end
    return redis.call('ZRANGE', key, -most, -most, 'WITHSCORES')[2] + window - now
end

local known = redis.call('EXISTS', KEYS.known) == 1
local wait = 0
for i = FIRST.subjects, #KEYS do
    redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now - window)
    -- After the clock was set back, attempts of the future would lock the subject out until then.
    redis.call('ZREMRANGEBYSCORE', KEYS[i], now + window, '+inf')
    if i == FIRST.subjects or not known then
        local limit = tonumber(ARGV[FIRST.limits + i - FIRST.subjects])
        wait = math.max(wait, math.min(wait_of(KEYS[i], limit), window))
    end
end
if wait > 0 then
    return math.ceil(wait)
end
for i = FIRST.subjects, #KEYS do
    redis.call('ZADD', KEYS[i], now, id)
    redis.call('ZADD', KEYS.index, now, KEYS[i])
end
return 0

-- Removes attempts that are older than the window, and subjects that have no others.
-- KEYS: the index, then subjects. Of the sys group. ARGV: when the window begins, in milliseconds.
-- Returns how many subjects are gone. A repeat changes nothing.
local gone = 0
for i = 2, #KEYS do
    redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', ARGV[1])
    local last = redis.call('ZRANGE', KEYS[i], -1, -1, 'WITHSCORES')
    if last[2] then
        redis.call('ZADD', KEYS[1], last[2], KEYS[i])
    else
        gone = gone + redis.call('ZREM', KEYS[1], KEYS[i])
    end
end
return gone

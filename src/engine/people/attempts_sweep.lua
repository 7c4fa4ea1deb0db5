-- Removes attempts that are older than the window, and subjects that have no others.
--   key index
--   keys subjects: of the sys group
--   arg before: when the window begins, in milliseconds
-- Returns how many subjects are gone. Idempotent.
local gone = 0
for i = FIRST.subjects, #KEYS do
    redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', ARGV.before)
    local last = redis.call('ZRANGE', KEYS[i], -1, -1, 'WITHSCORES')
    if last[2] then
        redis.call('ZADD', KEYS.index, last[2], KEYS[i])
    else
        gone = gone + redis.call('ZREM', KEYS.index, KEYS[i])
    end
end
return gone

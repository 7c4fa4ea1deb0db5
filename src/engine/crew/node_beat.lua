-- A node says that it lives, and learns who else does. On the clock of Redis.
-- KEYS: the nodes by their last sign of life; what they say of themselves; the same of those who fell silent.
-- ARGV: its incarnation; how long a node may be silent, ms; what it says of itself, as JSON, or '' if it goes.
-- Returns the living: incarnation, what it says, incarnation, ... Safe to repeat.
local LOST_MAX = 256
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HDEL', KEYS[3], ARGV[1])
if ARGV[3] == '' then
    redis.call('ZREM', KEYS[1], ARGV[1])
    redis.call('HDEL', KEYS[2], ARGV[1])
else
    redis.call('ZADD', KEYS[1], now, ARGV[1])
    redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
end
for _, dead in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2]))) do
    local said = redis.call('HGET', KEYS[2], dead)
    if said and redis.call('HLEN', KEYS[3]) < LOST_MAX then
        redis.call('HSET', KEYS[3], dead, said)
    end
    redis.call('ZREM', KEYS[1], dead)
    redis.call('HDEL', KEYS[2], dead)
end
local living = {}
for _, node in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
    living[#living + 1] = node
    living[#living + 1] = redis.call('HGET', KEYS[2], node) or ''
end
return living

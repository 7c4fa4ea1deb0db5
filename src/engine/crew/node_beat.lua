-- Heartbeat of a node, on the clock of Redis: stores its note, and returns those of all nodes that
-- live. A node without a heartbeat for silent_ms moves to the hash of lost nodes.
--   key nodes
--   key notes
--   key lost
--   arg node: its incarnation
--   arg silent_ms: how long a node may be silent
--   arg note: what it says of itself, as JSON; '' if it leaves
-- nodes is a sorted set of incarnations by their last heartbeat; notes and lost are hashes of
-- notes.
-- Returns the time in ms, incarnation, note, incarnation, note, ... Idempotent but for the time of
-- the heartbeat.
local LOST_MAX = 256
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HDEL', KEYS.lost, ARGV.node)
if ARGV.note == '' then
    redis.call('ZREM', KEYS.nodes, ARGV.node)
    redis.call('HDEL', KEYS.notes, ARGV.node)
else
    redis.call('ZADD', KEYS.nodes, now, ARGV.node)
    redis.call('HSET', KEYS.notes, ARGV.node, ARGV.note)
end
local since = now - tonumber(ARGV.silent_ms)
for _, dead in ipairs(redis.call('ZRANGEBYSCORE', KEYS.nodes, '-inf', since)) do
    local note = redis.call('HGET', KEYS.notes, dead)
    if note and redis.call('HLEN', KEYS.lost) < LOST_MAX then
        redis.call('HSET', KEYS.lost, dead, note)
    end
    redis.call('ZREM', KEYS.nodes, dead)
    redis.call('HDEL', KEYS.notes, dead)
end
local living = {now}
for _, node in ipairs(redis.call('ZRANGE', KEYS.nodes, 0, -1)) do
    living[#living + 1] = node
    living[#living + 1] = redis.call('HGET', KEYS.notes, node) or ''
end
return living

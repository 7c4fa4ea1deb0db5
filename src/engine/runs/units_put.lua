-- Puts the units of a run into its list, and makes it RUNNING. As long as this server runs and no unit comes
-- back, the papers of a unit that waits have no results: that is what 'fresh' says.
-- KEYS: status, pending, inflight of one run.
-- ARGV: the units, in order.
-- Returns 1: done. 0: it has units already. -1: the run is not QUEUED or RUNNING. Safe to repeat.
local state = redis.call('HGET', KEYS[1], 'state')
if state ~= 'QUEUED' and state ~= 'RUNNING' then
    return -1
end
if redis.call('HEXISTS', KEYS[1], 'total_blocks') == 1 then
    return 0
end
local SLICE = 2000
for first = 1, #ARGV, SLICE do
    redis.call('RPUSH', KEYS[2], unpack(ARGV, first, math.min(first + SLICE - 1, #ARGV)))
end
redis.call('HSET', KEYS[1], 'state', 'RUNNING', 'total_blocks', #ARGV, 'finished_blocks', 0)
redis.call('HDEL', KEYS[1], 'fresh')
if tonumber(redis.call('HGET', KEYS[1], 'finished') or 0) == 0 then
    redis.call('HSET', KEYS[1], 'fresh', string.match(redis.call('INFO', 'server'), 'run_id:(%x+)'))
end
return 1

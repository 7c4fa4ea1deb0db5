-- Puts the units of a run into its list, and makes the run RUNNING.
--   key status
--   key pending
--   args units: in order
-- As long as this server runs and no unit comes back, the papers of a unit that waits have no
-- results: that is what 'fresh' says.
-- Returns 1: done. 0: it has units already. -1: the run is not QUEUED or RUNNING. Idempotent.
local state = redis.call('HGET', KEYS.status, 'state')
if state ~= 'QUEUED' and state ~= 'RUNNING' then
    return -1
end
if redis.call('HEXISTS', KEYS.status, 'total_blocks') == 1 then
    return 0
end
local SLICE = 2000
for first = FIRST.units, #ARGV, SLICE do
    redis.call('RPUSH', KEYS.pending, unpack(ARGV, first, math.min(first + SLICE - 1, #ARGV)))
end
redis.call('HSET', KEYS.status, 'state', 'RUNNING', 'total_blocks', #ARGV, 'finished_blocks', 0)
redis.call('HDEL', KEYS.status, 'fresh')
if tonumber(redis.call('HGET', KEYS.status, 'finished') or 0) == 0 then
    redis.call('HSET', KEYS.status, 'fresh', GENERATION)
end
return 1

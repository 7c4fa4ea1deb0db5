-- Finishes a unit if its worker still holds the lease. The last unit ends the run (R6).
--   key status
--   key inflight
--   arg unit
--   arg lease
--   arg generation: in which the unit was taken
-- Returns 1: done. 2: done, and it was the last: the run is DONE. 0: it is not held under this
-- lease, or was taken in an earlier generation: results of it may have been lost. -1: the run has
-- ended. A repeat changes nothing: it finds the unit gone and returns 0, or -1 if it was the last.
local state = redis.call('HGET', KEYS.status, 'state')
if state ~= 'RUNNING' and state ~= 'PAUSED' then
    return -1
end
if GENERATION ~= ARGV.generation or
   redis.call('HGET', KEYS.inflight, ARGV.unit) ~= ARGV.lease then
    return 0
end
redis.call('HDEL', KEYS.inflight, ARGV.unit)
local finished = redis.call('HINCRBY', KEYS.status, 'finished_blocks', 1)
if finished < tonumber(redis.call('HGET', KEYS.status, 'total_blocks')) then
    return 1
end
redis.call('HSET', KEYS.status, 'state', 'DONE')
return 2

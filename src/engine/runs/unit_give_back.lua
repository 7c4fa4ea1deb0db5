-- Puts units back to the head of the list, each only if it is held under the lease named with it.
-- Those of a run that has ended are dropped.
--   key status
--   key pending
--   key inflight
--   args leases: unit, lease, unit, lease, ...
-- Returns how many were held so. Idempotent: a unit that is not held is skipped.
local state = redis.call('HGET', KEYS.status, 'state')
local given = 0
for i = #ARGV - 1, FIRST.leases, -2 do
    if redis.call('HGET', KEYS.inflight, ARGV[i]) == ARGV[i + 1] then
        redis.call('HDEL', KEYS.inflight, ARGV[i])
        if state == 'RUNNING' or state == 'PAUSED' then
            redis.call('LPUSH', KEYS.pending, ARGV[i])
        end
        given = given + 1
    end
end
if given > 0 then
    redis.call('HDEL', KEYS.status, 'fresh') -- some of their papers may have results
end
return given

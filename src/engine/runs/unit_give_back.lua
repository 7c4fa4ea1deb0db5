-- Puts units back to the head of the list, each only if it is held under the lease named with it. Those of a run
-- that has ended are let go.
-- KEYS: status, pending, inflight of one run.
-- ARGV: unit, lease, unit, lease, ...
-- Returns how many were held so. Safe to repeat: a unit that is not held is passed over.
local state = redis.call('HGET', KEYS[1], 'state')
local given = 0
for i = #ARGV - 1, 1, -2 do
    if redis.call('HGET', KEYS[3], ARGV[i]) == ARGV[i + 1] then
        redis.call('HDEL', KEYS[3], ARGV[i])
        if state == 'RUNNING' or state == 'PAUSED' then
            redis.call('LPUSH', KEYS[2], ARGV[i])
        end
        given = given + 1
    end
end
if given > 0 then
    redis.call('HDEL', KEYS[1], 'fresh') -- some of their papers may have results
end
return given

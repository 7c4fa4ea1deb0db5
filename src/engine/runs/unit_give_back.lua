-- Puts units back to the head of the list, each only if it is held under the lease named with it.
-- Those of a run that has ended are dropped.
--   key status
--   key pending
--   key inflight
--   key vain
--   args leases: three for each: unit, lease, and '1' if a paper of it may have been asked about in
--        vain: that is counted
-- Returns how many were held so. Idempotent: a unit that is not held is skipped.
local state = redis.call('HGET', KEYS.status, 'state')
local given = 0
for i = #ARGV - 2, FIRST.leases, -3 do
    if redis.call('HGET', KEYS.inflight, ARGV[i]) == ARGV[i + 1] then
        redis.call('HDEL', KEYS.inflight, ARGV[i])
        if ARGV[i + 2] == '1' then
            local vain = redis.call('HGET', KEYS.vain, ARGV[i]) or '0 0'
            local asks, open = string.match(vain, '^(%d+) (%d+)$')
            redis.call('HSET', KEYS.vain, ARGV[i], asks + 1 .. ' ' .. open)
        end
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

-- Renews the leases of jobs.
--   key leases
--   key info
--   arg ms: from now
--   args jobs: two for each: id, lease
-- Both keys are of one queue; info as in jobs_push.lua.
-- Returns for each job: 1: kept. 2: kept, but a later version of it waits for its end. 0: another
-- holder has it, or none. Idempotent but for the end.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local out = {}
for i = FIRST.jobs, #ARGV, 2 do
    local lease, next = string.match(redis.call('HGET', KEYS.info, ARGV[i]) or '',
                                     ' (%S+) (%S+)$')
    if lease == ARGV[i + 1] then
        redis.call('ZADD', KEYS.leases, now + ARGV.ms, ARGV[i])
        out[#out + 1] = next == '-' and 1 or 2
    else
        out[#out + 1] = 0
    end
end
return out

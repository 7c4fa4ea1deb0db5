-- Leases a download to a worker: one whose lease has expired, else the next that waits.
--   key queue
--   key taken
--   arg ms: the lease, from now
-- Both keys are of the sys group.
-- Returns {the download, or '', how many wait}. Not idempotent: a repeat takes another one; the
-- first can be taken again when its lease has expired.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local taken = redis.call('ZRANGEBYSCORE', KEYS.taken, '-inf', now, 'LIMIT', 0, 1)[1] or
              redis.call('LPOP', KEYS.queue)
if taken then
    redis.call('ZADD', KEYS.taken, now + ARGV.ms, taken)
end
return {taken or '', redis.call('LLEN', KEYS.queue)}

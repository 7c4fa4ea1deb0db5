-- Removes a run from the queue, and lists it as running if it gets workers.
--   key queue
--   key running
--   arg run
--   arg workers: how many it may have; 0: none, it only leaves
-- Returns 1: done. 0: it was not in the queue. Idempotent.
if redis.call('ZREM', KEYS.queue, ARGV.run) == 0 then
    return 0
end
if ARGV.workers ~= '0' then
    redis.call('HSET', KEYS.running, ARGV.run, ARGV.workers)
end
return 1

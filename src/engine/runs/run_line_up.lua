-- Queues a run that is to have workers, unless it has them; removes any other run from the queue.
--   key queue
--   key running
--   arg run
--   arg submitted: when, ms
--   arg works: '1' if it is to have workers
-- Returns 1: it is new in the queue. 0: nothing had to be done. Idempotent.
if ARGV.works ~= '1' then
    redis.call('ZREM', KEYS.queue, ARGV.run)
    return 0
end
if redis.call('HEXISTS', KEYS.running, ARGV.run) == 1 then
    return 0
end
return redis.call('ZADD', KEYS.queue, 'NX', ARGV.submitted, ARGV.run)

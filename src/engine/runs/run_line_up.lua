-- A run that shall have workers waits for them in the queue, unless it has them; any other leaves the queue.
-- KEYS: the queue, the runs that have workers.
-- ARGV: the run; when it was submitted, ms; 1 if it shall have workers.
-- Returns 1: it is new in the queue. 0: nothing had to be done. Safe to repeat.
if ARGV[3] ~= '1' then
    redis.call('ZREM', KEYS[1], ARGV[1])
    return 0
end
if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 then
    return 0
end
return redis.call('ZADD', KEYS[1], 'NX', ARGV[2], ARGV[1])

-- A run leaves the queue: it gets workers, or is not to have any.
-- KEYS: the queue, the runs that have workers.
-- ARGV: the run; how many workers it may have; 0: none, it just leaves.
-- Returns 1: done. 0: it was not in the queue. Safe to repeat.
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then
    return 0
end
if ARGV[2] ~= '0' then
    redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
end
return 1

-- A worker takes a download: one whose worker did not keep its lease, else the next that waits.
-- KEYS: the queue, those taken. Of the sys group.
-- ARGV: ms of the lease.
-- Returns {the download, or '', how many wait}. Repeated, it takes another; the first comes back with its lease's end.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local taken = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 1)[1] or redis.call('LPOP', KEYS[1])
if taken then
    redis.call('ZADD', KEYS[2], now + ARGV[1], taken)
end
return {taken or '', redis.call('LLEN', KEYS[1])}

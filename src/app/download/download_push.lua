-- Puts a download into the queue, if there is room.
-- KEYS: the queue. Of the sys group.
-- ARGV: the download, how many may be in it.
-- Returns 1: it is in. 0: the queue is full. Repeated, it is there twice: whoever takes it second finds that it
-- is being built, or done.
if redis.call('LLEN', KEYS[1]) >= tonumber(ARGV[2]) then
    return 0
end
redis.call('RPUSH', KEYS[1], ARGV[1])
return 1

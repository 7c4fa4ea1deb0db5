-- A download that waits for long is put into the queue, if it is neither there nor taken: a Redis that was restarted may know
-- of it and have lost just that.
-- KEYS: the queue, those taken. Of the sys group.
-- ARGV: the download.
-- Returns 1: it is in again. 0: it was not lost. A repeat changes nothing.
if redis.call('ZSCORE', KEYS[2], ARGV[1]) or redis.call('LPOS', KEYS[1], ARGV[1]) then
    return 0
end
redis.call('RPUSH', KEYS[1], ARGV[1])
return 1

-- Puts a download into the queue, if there is room.
--   key queue
--   arg download
--   arg queued_max: how many may be in the queue
-- The key is of the sys group.
-- Returns 1: it is in. 0: the queue is full. Not idempotent: after a repeat it is there twice, and
-- the worker that takes it second finds that it is being built, or done.
if redis.call('LLEN', KEYS.queue) >= tonumber(ARGV.queued_max) then
    return 0
end
redis.call('RPUSH', KEYS.queue, ARGV.download)
return 1

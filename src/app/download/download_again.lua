-- Puts a download that has waited for long into the queue again, if it is neither there nor taken:
-- a Redis that was restarted may know of it and have lost just that.
--   key queue
--   key taken
--   arg download
-- Both keys are of the sys group.
-- Returns 1: it is in the queue again. 0: it was not lost. Idempotent.
if redis.call('ZSCORE', KEYS.taken, ARGV.download) or
   redis.call('LPOS', KEYS.queue, ARGV.download) then
    return 0
end
redis.call('RPUSH', KEYS.queue, ARGV.download)
return 1

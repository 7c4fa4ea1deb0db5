-- Reconciles a download that has waited for long: puts it into the queue again, if it is neither
-- there nor taken. A Redis that was restarted may have kept its status and lost its queue entry.
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

-- Marks a download as failed, unless it is done, or gone.
--   key status
--   arg reason
-- Returns 1: done. 0: nothing was changed. Idempotent.
local state = redis.call('HGET', KEYS.status, 'state')
if state ~= 'PENDING' and state ~= 'PROCESSING' then
    return 0
end
redis.call('HDEL', KEYS.status, 'lease')
redis.call('HSET', KEYS.status, 'state', 'FAILED', 'error', ARGV.reason)
return 1

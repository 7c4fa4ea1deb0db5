-- Pauses or terminates a run whose row cannot be written now, and notes that the row is owed that.
--   key status
--   key pause
--   key terminate
--   key pending
--   key inflight
--   key vain
--   arg state: 'PAUSED' or 'CANCELLED'
--   arg note: what the row is owed (owed.h)
-- As run_tell does it, but 'changed' stays: it is the version of the row that Redis has. A run that
-- has ended is left as it is.
-- Returns the state afterwards; '': there is no such run. Idempotent.
local was = redis.call('HGET', KEYS.status, 'state')
if was ~= 'QUEUED' and was ~= 'RUNNING' and was ~= 'PAUSED' then
    return was or ''
end
redis.call('HSET', KEYS.status, 'state', ARGV.state, 'owed', ARGV.note)
if was ~= ARGV.state then
    redis.call('HSET', KEYS.status, 'reason', '')
end
if ARGV.state == 'PAUSED' then
    redis.call('SET', KEYS.pause, '1')
else
    redis.call('DEL', KEYS.pause)
    redis.call('SET', KEYS.terminate, '1')
    redis.call('UNLINK', KEYS.pending, KEYS.inflight, KEYS.vain)
end
return ARGV.state

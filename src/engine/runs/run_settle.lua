-- Drops the note of what a row was owed (owed.h), once the row has it.
--   key status
--   arg note
-- Returns 1, or 0: it is another one by now, or gone. Idempotent.
if redis.call('HGET', KEYS.status, 'owed') ~= ARGV.note then
    return 0
end
return redis.call('HDEL', KEYS.status, 'owed')

-- Drops what a user has in Redis but for money. The version of the record stays, alone: a loader that
-- read the row before a later change must find it and be refused, however slow it is.
-- KEYS: the user's record, the history.
-- Returns 1. Safe to repeat.
local version = redis.call('HGET', KEYS[1], 'version')
redis.call('UNLINK', KEYS[1], KEYS[2])
if version then
    redis.call('HSET', KEYS[1], 'version', version)
end
return 1

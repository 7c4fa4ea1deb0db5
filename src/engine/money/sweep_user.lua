-- Drops what a user has in Redis but for money. The version of the record stays, alone: a loader
-- that read the row before a later change must find it and be refused, however slow it is.
--   key user
--   key history
-- Returns 1. Idempotent.
local version = redis.call('HGET', KEYS.user, 'version')
redis.call('UNLINK', KEYS.user, KEYS.history)
if version then
    redis.call('HSET', KEYS.user, 'version', version)
end
return 1

-- Marks a download as failed, if the worker still holds it.
--   key status
--   key downloads
--   arg lease
--   arg id: of the download
--   arg reason
-- downloads are those of the user, see download_create.lua.
-- Returns 1: done. 0: it belongs to another worker, or a repeat; nothing was changed.
if redis.call('HGET', KEYS.status, 'lease') ~= ARGV.lease then
    return 0
end
redis.call('HDEL', KEYS.status, 'lease')
redis.call('ZREM', KEYS.downloads, ARGV.id)
redis.call('HSET', KEYS.status, 'state', 'FAILED', 'error', ARGV.reason)
return 1

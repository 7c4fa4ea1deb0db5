-- Stores the progress of a download, and perhaps a piece of its file, if the worker still holds it.
--   key status
--   key piece
--   arg lease
--   arg progress
--   arg packed: the bytes of the piece; '': there is none yet
--   arg ms: the time to live of the piece
-- Returns 1, or 0: the download belongs to another worker by now; nothing was changed. Idempotent.
if redis.call('HGET', KEYS.status, 'lease') ~= ARGV.lease then
    return 0
end
redis.call('HSET', KEYS.status, 'progress', ARGV.progress)
if ARGV.packed ~= '' then
    redis.call('SET', KEYS.piece, ARGV.packed, 'PX', ARGV.ms)
end
return 1

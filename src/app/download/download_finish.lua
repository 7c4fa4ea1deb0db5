-- Marks the file of a download as built, if the worker still holds the download.
--   key status
--   key downloads
--   arg lease
--   arg id: of the download
--   arg bytes: of the file
--   arg pieces: of the file; 0: it is not held, but built again while it is sent
--   arg ms: the time to live of the pieces
--   arg held_max: how many bytes of one user may be held
-- downloads are the files of the user that are held, a sorted set: "<id>:<bytes>", each with the
-- time from which it does not count any more.
-- Returns 1: done. 2: done, but the user has so much held that this file must not be: its pieces
-- can go. 0: it belongs to another worker, or a repeat; nothing was changed.
if redis.call('HGET', KEYS.status, 'lease') ~= ARGV.lease then
    return 0
end
redis.call('HDEL', KEYS.status, 'lease')
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS.downloads, '-inf', now)
local bytes, pieces = tonumber(ARGV.bytes), tonumber(ARGV.pieces)
local held = bytes
for _, member in ipairs(redis.call('ZRANGE', KEYS.downloads, 0, -1)) do
    held = held + (tonumber(string.match(member, ':(%d+)$')) or 0)
end
if pieces > 0 and held <= tonumber(ARGV.held_max) then
    redis.call('ZADD', KEYS.downloads, now + ARGV.ms, ARGV.id .. ':' .. ARGV.bytes)
    redis.call('PEXPIRE', KEYS.downloads, ARGV.ms)
    redis.call('HSET', KEYS.status, 'state', 'READY', 'progress', 100, 'bytes', bytes,
               'pieces', pieces, 'until', now + ARGV.ms)
    return 1
end
redis.call('HSET', KEYS.status, 'state', 'READY', 'progress', 100, 'streamed', 1)
return pieces > 0 and 2 or 1

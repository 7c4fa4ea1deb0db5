-- A worker is done with a download, if it is still its own.
-- KEYS: status of the download, the user's downloads (download_create.lua).
-- ARGV: the lease, the download's id, the state; then for READY: bytes and pieces of the file, ms that they live, how
--       many bytes one user may have held. 0 pieces: it is not held, but built while it is sent. For FAILED: why.
-- Returns 1: done. 2: done, but this user has so much held that this file must not be: the pieces can go.
--       0: it belongs to another worker. Repeated, it returns 0.
if redis.call('HGET', KEYS[1], 'lease') ~= ARGV[1] then
    return 0
end
redis.call('HDEL', KEYS[1], 'lease')
redis.call('ZREM', KEYS[2], ARGV[2])
if ARGV[3] ~= 'READY' then
    redis.call('HSET', KEYS[1], 'state', ARGV[3], 'error', ARGV[4])
    return 1
end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
local bytes, pieces = tonumber(ARGV[4]), tonumber(ARGV[5])
local held = bytes
for _, member in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
    held = held + (tonumber(string.match(member, ':(%d+)$')) or 0)
end
if pieces > 0 and held <= tonumber(ARGV[7]) then
    redis.call('ZADD', KEYS[2], now + ARGV[6], ARGV[2] .. ':' .. ARGV[4])
    redis.call('HSET', KEYS[1], 'state', 'READY', 'progress', 100, 'bytes', bytes, 'pieces', pieces, 'until',
               now + ARGV[6])
    return 1
end
redis.call('HSET', KEYS[1], 'state', 'READY', 'progress', 100, 'streamed', 1)
return pieces > 0 and 2 or 1

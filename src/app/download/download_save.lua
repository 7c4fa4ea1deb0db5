-- A worker is so far, and has perhaps another piece of the file.
-- KEYS: status of the download; the piece, if there is one.
-- ARGV: the lease, progress; the piece's bytes, ms that it lives.
-- Returns 1, or 0: the download belongs to another worker now, and nothing was changed. Safe to repeat.
if redis.call('HGET', KEYS[1], 'lease') ~= ARGV[1] then
    return 0
end
redis.call('HSET', KEYS[1], 'progress', ARGV[2])
if KEYS[2] then
    redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
end
return 1

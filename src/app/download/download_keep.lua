-- The lease of a download lasts so long from now, if it is taken at all.
-- KEYS: those taken. Of the sys group.
-- ARGV: the download, ms.
-- Returns 1, or 0: it is not taken. A repeat changes nothing but the end.
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then
    return 0
end
local clock = redis.call('TIME')
redis.call('ZADD', KEYS[1], clock[1] * 1000 + math.floor(clock[2] / 1000) + ARGV[2], ARGV[1])
return 1

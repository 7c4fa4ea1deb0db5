-- Makes a lock last longer, if it is still held by who asks.
-- KEYS: the lock. ARGV: the token, milliseconds from now.
-- Returns 1, or 0: it has expired and may be somebody else's. A repeat changes nothing but the end.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
    return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])

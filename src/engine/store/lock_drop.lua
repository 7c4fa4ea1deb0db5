-- Lets go of a lock, if it is still held by who asks: after an expiry it may be somebody else's.
-- KEYS: the lock. ARGV: the token.
-- Returns 1, or 0: it was not held. A repeat changes nothing.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
    return 0
end
return redis.call('DEL', KEYS[1])

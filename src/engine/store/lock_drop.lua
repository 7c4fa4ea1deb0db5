-- Releases a lock, if the token still holds it.
--   key lock
--   arg token
-- Returns 1, or 0: it has expired and may be another holder's. Idempotent.
if redis.call('GET', KEYS.lock) ~= ARGV.token then
    return 0
end
return redis.call('DEL', KEYS.lock)

-- Renews the lease of a lock, if the token still holds it.
--   key lock
--   arg token
--   arg ms: from now
-- Returns 1, or 0: it has expired and may be another holder's. Idempotent but for the end.
if redis.call('GET', KEYS.lock) ~= ARGV.token then
    return 0
end
return redis.call('PEXPIRE', KEYS.lock, ARGV.ms)

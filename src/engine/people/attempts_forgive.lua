-- Takes back what was counted for a log-in that was right, or for a registration that was not
-- examined: all attempts of the user, and the latest of the address.
--   key index
--   keys subjects: the user (not for registrations), then the address; of the sys group
-- Returns 1. Not idempotent: a repeat takes one more attempt back from the address.
for i = FIRST.subjects, #KEYS - 1 do
    redis.call('UNLINK', KEYS[i])
end
redis.call('ZPOPMAX', KEYS[#KEYS])
for i = FIRST.subjects, #KEYS do
    if redis.call('EXISTS', KEYS[i]) == 0 then
        redis.call('ZREM', KEYS.index, KEYS[i])
    end
end
return 1

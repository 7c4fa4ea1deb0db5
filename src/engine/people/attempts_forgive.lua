-- Takes back what was counted for a log-in that was right, or for a registration that was not looked
-- at: all of the user's attempts, and one of the address's, the latest.
-- KEYS: the index, the user (not for registrations), the address. Of the sys group. ARGV: nothing.
-- Returns 1. A repeat takes one more back from the address, which is why nobody repeats it.
for i = 2, #KEYS - 1 do
    redis.call('UNLINK', KEYS[i])
end
redis.call('ZPOPMAX', KEYS[#KEYS])
for i = 2, #KEYS do
    if redis.call('EXISTS', KEYS[i]) == 0 then
        redis.call('ZREM', KEYS[1], KEYS[i])
    end
end
return 1

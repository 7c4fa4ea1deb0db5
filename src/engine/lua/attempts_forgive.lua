-- Takes back what was counted for a log-in that was right: all of the user's attempts, and one of the
-- address's, the latest.
-- KEYS: the index, the user, the address. Of the sys group. ARGV: nothing.
-- Returns 1. A repeat takes one more back from the address, which is why nobody repeats it.
redis.call('UNLINK', KEYS[2])
redis.call('ZPOPMAX', KEYS[3])
for i = 2, 3 do
    if redis.call('EXISTS', KEYS[i]) == 0 then
        redis.call('ZREM', KEYS[1], KEYS[i])
    end
end
return 1

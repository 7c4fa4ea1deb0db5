-- Forgets all attempts of some subjects.
--   key index
--   keys subjects: of the sys group
-- Returns how many of them had any. Idempotent.
local gone = 0
for i = FIRST.subjects, #KEYS do
    gone = gone + redis.call('UNLINK', KEYS[i])
    redis.call('ZREM', KEYS.index, KEYS[i])
end
return gone

-- Takes an attempt back: its password was right, or was not examined.
--   key index
--   key known: of the first subject, as attempts_take has it
--   keys subjects: of the sys group
--   arg id: of the attempt
--   arg known_ms: 0: it was not examined; else it was right: all attempts of the first subject
--     are taken back, and it is known for so long
-- Returns 1. Idempotent.
local known = tonumber(ARGV.known_ms)
if known > 0 then
    redis.call('UNLINK', KEYS[FIRST.subjects])
    redis.call('SET', KEYS.known, '1', 'PX', known)
end
for i = FIRST.subjects, #KEYS do
    redis.call('ZREM', KEYS[i], ARGV.id)
    if redis.call('EXISTS', KEYS[i]) == 0 then
        redis.call('ZREM', KEYS.index, KEYS[i])
    end
end
return 1

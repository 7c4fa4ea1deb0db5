-- Leaves marks where sessions were: they have ended, and nobody can fill them again.
-- KEYS: their owner's set, then the sessions. ARGV: milliseconds the marks live, then the sids.
-- Returns how many were alive here. A repeat changes nothing but the end of the marks.
local alive = 0
for i = 2, #KEYS do
    if redis.call('TYPE', KEYS[i]).ok == 'hash' then
        alive = alive + redis.call('HEXISTS', KEYS[i], 'user_id')
    end
    redis.call('DEL', KEYS[i])
    redis.call('HSET', KEYS[i], 'ended', '1')
    redis.call('PEXPIRE', KEYS[i], ARGV[1])
    redis.call('SREM', KEYS[1], ARGV[i])
end
return alive

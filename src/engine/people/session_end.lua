-- Replaces sessions that have ended by tombstones: no loader can fill them again.
--   key set: the sids of their owner
--   keys sessions
--   arg ms: how long the tombstones live
--   arg uid: of their owner, to tell why a session has ended
--   args sids: in the order of the sessions
-- Returns how many were alive here. Idempotent but for the end of the tombstones.
local alive = 0
for i = FIRST.sessions, #KEYS do
    if redis.call('TYPE', KEYS[i]).ok == 'hash' then
        alive = alive + redis.call('HEXISTS', KEYS[i], 'user_id')
    end
    redis.call('DEL', KEYS[i])
    redis.call('HSET', KEYS[i], 'ended', '1', 'uid', ARGV.uid)
    redis.call('PEXPIRE', KEYS[i], ARGV.ms)
    redis.call('SREM', KEYS.set, ARGV[i - FIRST.sessions + FIRST.sids])
end
return alive

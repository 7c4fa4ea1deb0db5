-- Gives the keys of a run that is archived a time to live, where they have none (ARC-1), and drops
-- its units: an older Redis may have brought some back.
--   key status
--   key pending
--   key inflight
--   key vain
--   keys others: of the run
--   arg changed: changed_at of its row when it was archived, ms
--   arg ms: the time to live
-- Returns how many keys got one now, or were dropped; -1: a later version reopened the run: nothing
-- was done. Idempotent.
local changed = redis.call('HGET', KEYS.status, 'changed')
if changed and tonumber(changed) > tonumber(ARGV.changed) then
    return -1
end
local count = redis.call('UNLINK', KEYS.pending, KEYS.inflight, KEYS.vain) +
              redis.call('PEXPIRE', KEYS.status, ARGV.ms, 'NX')
for i = FIRST.others, #KEYS do
    count = count + redis.call('PEXPIRE', KEYS[i], ARGV.ms, 'NX')
end
return count

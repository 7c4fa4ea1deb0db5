-- Gives the keys of a run that is archived a time to live, where they have none (ARC-1).
--   key status
--   keys others: of the run
--   arg changed: changed_at of its row when it was archived, ms
--   arg ms: the time to live
-- Returns how many keys got one now; -1: a later version reopened the run: nothing was done.
-- Idempotent.
local changed = redis.call('HGET', KEYS.status, 'changed')
if changed and tonumber(changed) > tonumber(ARGV.changed) then
    return -1
end
local count = 0
for _, key in ipairs(KEYS) do
    count = count + redis.call('PEXPIRE', key, ARGV.ms, 'NX')
end
return count

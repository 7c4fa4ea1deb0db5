-- Gives the keys of a run that is archived a time to live, where they have none (ARC-1).
-- KEYS: status of one run, then its other keys.
-- ARGV: changed_at of its row when it was archived, ms; the time to live, ms.
-- Returns how many keys got one now; -1: the run goes on, by a later promise: nothing was done. Safe to repeat.
local changed = redis.call('HGET', KEYS[1], 'changed')
if changed and tonumber(changed) > tonumber(ARGV[1]) then
    return -1
end
local count = 0
for _, key in ipairs(KEYS) do
    count = count + redis.call('PEXPIRE', key, ARGV[2], 'NX')
end
return count

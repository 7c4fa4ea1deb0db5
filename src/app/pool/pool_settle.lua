-- Renames a list that rests, and takes back what it may hand out: its limit becomes the last number
-- that it handed out. Under the old name the limit cannot be raised any more, by no call that is
-- still on its way; under the new one not before MySQL has it. The old name is kept for a node that
-- finds the new one here and the old one there: it then knows that nothing was lost.
--   key state
--   key list
--   arg name: of the list
--   arg fresh: its new name
--   arg ms: what is known of an empty one is forgotten after so long
--   arg first: only if this is its next number: nothing was handed out since
-- Returns 1, or 0: there is no such list, or it does not rest. Idempotent.
local found = redis.call('HMGET', KEYS.state, 'generation', 'list', 'first')
if found[1] ~= GENERATION or found[3] ~= ARGV.first then
    return 0
end
if found[2] == ARGV.fresh then
    return 1
end
if found[2] ~= ARGV.name then
    return 0
end
redis.call('HSET', KEYS.state, 'list', ARGV.fresh, 'was', ARGV.name, 'limit',
           ARGV.first - 1)
-- Of a group that has run out nothing is kept: a list can be begun again, at no cost.
if redis.call('EXISTS', KEYS.list) == 0 then
    redis.call('PEXPIRE', KEYS.state, ARGV.ms)
end
return 1

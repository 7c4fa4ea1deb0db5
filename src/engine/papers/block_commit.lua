-- Moves a block that was built aside into its place, if its builder still holds the lock.
--   key lock
--   key aside
--   key block
--   arg token: of the lock
--   arg fields: how many the key aside must have; 0: the block has no papers and is removed
--   arg ms: the time to live of the block
-- On a cluster the three keys are in one slot: lock and aside carry the block's name in braces.
-- Returns 1: done. 0: the lock belongs to another builder by now. -1: what is aside is not whole. 0
-- and -1 change nothing. Idempotent: a repeat finds nothing aside, and leaves the block as it is.
if redis.call('GET', KEYS.lock) ~= ARGV.token then
    return 0
end
local fields = tonumber(ARGV.fields)
if fields == 0 then
    redis.call('UNLINK', KEYS.aside, KEYS.block)
    return 1
end
if redis.call('HLEN', KEYS.aside) ~= fields then
    return -1
end
-- RENAME would free the old block in this thread: tens of thousands of values.
redis.call('UNLINK', KEYS.block)
redis.call('RENAME', KEYS.aside, KEYS.block)
redis.call('PEXPIRE', KEYS.block, ARGV.ms)
return 1

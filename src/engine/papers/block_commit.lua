-- Moves a block that was built aside into its place, if its builder still holds the lock.
-- KEYS: the lock, the key aside, the block. On a cluster the three are in one slot: the names of
--       the first two carry the third in braces.
-- ARGV: the lock's token; how many fields the key aside must have, 0 for a block that has no
--       papers and shall go; milliseconds the block shall live.
-- Returns 1: done. 0: the lock is not ours any more. -1: what is aside is not whole. Nothing was
-- changed then. A repeat finds nothing aside, and leaves the block alone.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
    return 0
end
local fields = tonumber(ARGV[2])
if fields == 0 then
    redis.call('UNLINK', KEYS[2], KEYS[3])
    return 1
end
if redis.call('HLEN', KEYS[2]) ~= fields then
    return -1
end
-- RENAME would free the old block in this thread: tens of thousands of values.
redis.call('UNLINK', KEYS[3])
redis.call('RENAME', KEYS[2], KEYS[3])
redis.call('PEXPIRE', KEYS[3], ARGV[3])
return 1

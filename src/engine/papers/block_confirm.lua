-- Writes a new header to a block whose papers are known to be up to date.
--   key block
--   arg field: of the header
--   arg papers
--   arg digest: nothing happens unless the header has both
--   arg header: the new one
-- Returns 1: done. 0: the block has other papers by now, or has gone. Idempotent.
local header = redis.call('HGET', KEYS.block, ARGV.field)
local known = ARGV.papers .. ' ' .. ARGV.digest
if not header or (header ~= known and string.sub(header, 1, #known + 1) ~= known .. ' ') then
    return 0
end
redis.call('HSET', KEYS.block, ARGV.field, ARGV.header)
return 1

-- Tells a list how far it may hand out: MySQL has noted it.
--   key state
--   arg name: of the list
--   arg limit
-- Returns 1, or 0: this Redis has no such list. Idempotent, and a late one takes nothing back.
local found = redis.call('HMGET', KEYS.state, 'generation', 'list', 'limit')
if found[1] ~= GENERATION or found[2] ~= ARGV.name then
    return 0
end
if tonumber(ARGV.limit) > tonumber(found[3]) then
    redis.call('HSET', KEYS.state, 'limit', ARGV.limit)
end
redis.call('PERSIST', KEYS.state)
return 1

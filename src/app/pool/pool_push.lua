-- Puts items into the list of a group, behind those that are in it.
--   key list
--   key state
--   arg name: of the list that they were numbered for
--   arg number: of the first of them
--   arg bytes: of all of them
--   args items: in their order
-- Returns the number behind the last item of the list: the next one to push. -1: this Redis has no
-- such list. Idempotent: items that do not continue the list are not taken.
local found = redis.call('HMGET', KEYS.state, 'generation', 'list', 'first')
if found[1] ~= GENERATION or found[2] ~= ARGV.name then
    return -1
end
local behind = found[3] + redis.call('LLEN', KEYS.list)
if behind ~= tonumber(ARGV.number) then
    return behind
end
redis.call('LPUSH', KEYS.list, unpack(ARGV, FIRST.items))
redis.call('PERSIST', KEYS.state)
redis.call('HINCRBY', KEYS.state, 'pushed_bytes', ARGV.bytes)
redis.call('HINCRBY', KEYS.state, 'pushed', #ARGV - FIRST.items + 1)
return behind + #ARGV - FIRST.items + 1

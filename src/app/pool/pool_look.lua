-- What a group has in Redis.
--   key list
--   key state
-- Returns a list: state.list ('' if this Redis has no list that counts), state.first, state.limit,
-- state.marked, items in the list, the bytes they take, about; state.list, whether it counts or
-- not; and its name before, if it was renamed (pool_settle.lua). Changes nothing.
local found = redis.call('HMGET', KEYS.state, 'generation', 'list', 'first', 'limit', 'marked',
                         'pushed', 'pushed_bytes', 'was')
local length = redis.call('LLEN', KEYS.list)
local each = tonumber(found[7] or 0) / math.max(tonumber(found[6] or 0), 1)
return {found[1] == GENERATION and found[2] or '', tonumber(found[3] or 0), tonumber(found[4] or 0),
        tonumber(found[5] or 0), length, math.floor(each * length), found[2] or '', found[8] or ''}

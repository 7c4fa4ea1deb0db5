-- Begins an empty list in place of one that counts no more.
--   key list
--   key state
--   arg seen: the name of the list that was seen here
--   arg generation: of the Redis in which it was seen
--   arg name: of the new one, which MySQL has
--   arg first: the next number
-- Nothing leaves the list before the limit is told. MySQL may have answered requests before it was
-- begun, so it is asked about them.
-- Returns 1, or 0: another list was begun meanwhile, or Redis was restarted. Idempotent.
local name = redis.call('HGET', KEYS.state, 'list') or ''
if GENERATION ~= ARGV.generation or (name ~= ARGV.seen and name ~= ARGV.name) then
    return 0
end
if name == ARGV.name and redis.call('HGET', KEYS.state, 'generation') == GENERATION then
    return 1
end
redis.call('UNLINK', KEYS.list, KEYS.state)
local now = redis.call('TIME')
redis.call('HSET', KEYS.state, 'generation', GENERATION, 'list', ARGV.name, 'first', ARGV.first,
           'limit', ARGV.first - 1, 'marked', ARGV.first - 1, 'asks', now[1] .. '000')
return 1

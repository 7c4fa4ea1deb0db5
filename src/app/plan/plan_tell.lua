-- Tells Redis that plans of a user have changed: what it holds of an earlier version counts no
-- more.
--   key fence
--   key training
--   key nutrition
--   keys gone: of a plan that was deleted
--   arg version: of the user's plans in MySQL
--   arg training_id: of the active plan; '': none is
--   arg nutrition_id: likewise
-- Keys as in plan_fill.lua.
-- Returns 1, or 0: it has heard of that. Idempotent.
for i = FIRST.gone, #KEYS do
    redis.call('UNLINK', KEYS[i])
end
local fence = redis.call('HMGET', KEYS.fence, 'run', 'version')
if fence[1] == GENERATION and tonumber(fence[2]) >= tonumber(ARGV.version) then
    return 0
end
redis.call('HSET', KEYS.fence, 'run', GENERATION, 'version', ARGV.version)
for key, id in pairs({[KEYS.training] = ARGV.training_id,
                      [KEYS.nutrition] = ARGV.nutrition_id}) do
    redis.call('DEL', key)
    if id ~= '' then
        redis.call('SET', key, id)
    end
end
return 1

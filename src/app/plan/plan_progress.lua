-- How far the making of a plan is. Progress never goes back, and what has ended stays so.
--   key task
--   key pending
--   arg id
--   arg status: generating, completed, failed, cancelled
--   arg progress: per cent
--   arg ms: to live
--   args fields: field, value, ... of the rest
-- Both keys are of one user. An end that is told again after 'generating' was written by a Redis
-- that came back older is told by a role.
-- Returns 1, or 0: it has ended. Idempotent.
local known = redis.call('HMGET', KEYS.task, 'status', 'progress')
local going = ARGV.status == 'generating'
if going and known[1] and known[1] ~= 'generating' and known[1] ~= 'failed' then
    return 0
end
local progress = tonumber(ARGV.progress)
if going and known[1] == 'generating' then
    progress = math.max(progress, tonumber(known[2]) or 0)
end
redis.call('HSET', KEYS.task, 'task_id', ARGV.id, 'status', ARGV.status, 'progress', progress,
           unpack(ARGV, FIRST.fields))
redis.call('PEXPIRE', KEYS.task, ARGV.ms)
if going then
    redis.call('SADD', KEYS.pending, ARGV.id)
else
    redis.call('SREM', KEYS.pending, ARGV.id)
end
return 1

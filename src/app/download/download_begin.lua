-- A worker that has taken a download begins with it: from now on its lease is the fencing token.
--   key status
--   arg lease
-- Returns {1, qid, type, scope, rows}, or {0}: it is done, or gone. Idempotent.
local state = redis.call('HGET', KEYS.status, 'state')
if state ~= 'PENDING' and state ~= 'PROCESSING' then
    return {0}
end
redis.call('HSET', KEYS.status, 'state', 'PROCESSING', 'lease', ARGV.lease, 'progress', 0)
local v = redis.call('HMGET', KEYS.status, 'qid', 'type', 'scope', 'rows')
return {1, v[1], v[2], v[3], v[4]}

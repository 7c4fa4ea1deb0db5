-- A worker asks what to do next: terminated? paused? else it takes a unit, and leaves its lease.
-- KEYS: status, terminate signal, pause signal, pending, inflight of one run.
-- ARGV: the lease; 1 if the worker has asked with this lease before and got no answer: then what it took is found.
-- Returns {status, unit, run id of the server, fresh}: 1 and a unit, fresh 1 if none of its papers can have a result;
-- 0: none is waiting; -1: paused; -2: terminated, final or gone.
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local state, fresh = unpack(redis.call('HMGET', KEYS[1], 'state', 'fresh'))
fresh = fresh == run and 1 or 0
if redis.call('EXISTS', KEYS[2]) == 1 or (state ~= 'RUNNING' and state ~= 'PAUSED') then
    return {-2, '', run, 0}
end
if ARGV[2] == '1' then
    local held = redis.call('HGETALL', KEYS[5])
    for i = 1, #held, 2 do
        if held[i + 1] == ARGV[1] then
            return {1, held[i], run, fresh}
        end
    end
end
if redis.call('EXISTS', KEYS[3]) == 1 or state == 'PAUSED' then
    return {-1, '', run, 0}
end
local unit = redis.call('LPOP', KEYS[4])
if not unit then
    return {0, '', run, 0}
end
redis.call('HSET', KEYS[5], unit, ARGV[1])
return {1, unit, run, fresh}

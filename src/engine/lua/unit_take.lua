-- A worker asks what to do next: terminated? paused? else it takes a unit, and leaves its lease.
-- KEYS: status, terminate signal, pause signal, pending, inflight of one run.
-- ARGV: the lease; 1 if the worker has asked with this lease before and got no answer: then what it took is found.
-- Returns {status, unit, run id of the server}: 1 and a unit; 0: none is waiting; -1: paused; -2: terminated, final or gone.
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local state = redis.call('HGET', KEYS[1], 'state')
if redis.call('EXISTS', KEYS[2]) == 1 or (state ~= 'RUNNING' and state ~= 'PAUSED') then
    return {-2, '', run}
end
if ARGV[2] == '1' then
    local held = redis.call('HGETALL', KEYS[5])
    for i = 1, #held, 2 do
        if held[i + 1] == ARGV[1] then
            return {1, held[i], run}
        end
    end
end
if redis.call('EXISTS', KEYS[3]) == 1 or state == 'PAUSED' then
    return {-1, '', run}
end
local unit = redis.call('LPOP', KEYS[4])
if not unit then
    return {0, '', run}
end
redis.call('HSET', KEYS[5], unit, ARGV[1])
return {1, unit, run}

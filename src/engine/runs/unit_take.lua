-- Takes a unit for a worker under its lease, unless the run is terminated or paused.
--   key status
--   key terminate
--   key pause
--   key pending
--   key inflight
--   key vain
--   arg lease
--   arg again: '1' if the worker has asked with this lease before and got no answer: then the unit
--        that it may have taken is found
-- Returns {status, unit, generation, fresh, vain}: 1 and a unit, fresh 1 if none of its papers can
-- have a result; 0: none is waiting; -1: paused; -2: terminated, final or gone. Idempotent with
-- '1'.
local state, fresh = unpack(redis.call('HMGET', KEYS.status, 'state', 'fresh'))
fresh = fresh == GENERATION and 1 or 0
local function taken(unit)
    local vain = fresh == 0 and redis.call('HGET', KEYS.vain, unit) or ''
    return {1, unit, GENERATION, fresh, vain}
end
if redis.call('EXISTS', KEYS.terminate) == 1 or (state ~= 'RUNNING' and state ~= 'PAUSED') then
    return {-2, '', GENERATION, 0, ''}
end
if ARGV.again == '1' then
    local held = redis.call('HGETALL', KEYS.inflight)
    for i = 1, #held, 2 do
        if held[i + 1] == ARGV.lease then
            return taken(held[i])
        end
    end
end
if redis.call('EXISTS', KEYS.pause) == 1 or state == 'PAUSED' then
    return {-1, '', GENERATION, 0, ''}
end
local unit = redis.call('LPOP', KEYS.pending)
if not unit then
    return {0, '', GENERATION, 0, ''}
end
redis.call('HSET', KEYS.inflight, unit, ARGV.lease)
return taken(unit)

-- A unit is done, if its worker still holds it. Whoever finishes the last one ends the run (R6).
-- KEYS: status, pending, inflight of one run.
-- ARGV: the unit, its lease, the run id of the server that it was taken in.
-- Returns 1: done. 2: done, and it was the last: the run is DONE. 0: it is not held under this lease, or was taken before
-- this server started: results of it may have been lost. -1: the run has ended. A repeat finds
-- the unit gone and returns 0, or -1 if it was the last.
local state = redis.call('HGET', KEYS[1], 'state')
if state ~= 'RUNNING' and state ~= 'PAUSED' then
    return -1
end
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
if run ~= ARGV[3] or redis.call('HGET', KEYS[3], ARGV[1]) ~= ARGV[2] then
    return 0
end
redis.call('HDEL', KEYS[3], ARGV[1])
local finished = redis.call('HINCRBY', KEYS[1], 'finished_blocks', 1)
if finished < tonumber(redis.call('HGET', KEYS[1], 'total_blocks')) then
    return 1
end
redis.call('HSET', KEYS[1], 'state', 'DONE')
return 2

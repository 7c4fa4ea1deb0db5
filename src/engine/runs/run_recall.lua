-- Brings an archived run back from MySQL, before it goes on: in steps, between which it must not have gone on already.
-- KEYS: status, results, arrivals, relevant papers, failed papers, progress of one run.
-- ARGV: changed_at of its row, ms; the step:
--   'begin': what is left of it in Redis goes.
--   'add', then three for each paper: DOI; 'r' relevant, 'n' not, 'f' failed; the result.
--   'end', state, finished, relevant, failed, cost: the status.
-- Returns how many results are there; -1: it goes on already, by a later promise: nothing was done. Safe to repeat.
local changed = redis.call('HGET', KEYS[1], 'changed')
if changed and tonumber(changed) > tonumber(ARGV[1]) then
    return -1
end
if ARGV[2] == 'begin' then
    redis.call('UNLINK', KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6])
elseif ARGV[2] == 'add' then
    for i = 3, #ARGV, 3 do
        if redis.call('HSETNX', KEYS[2], ARGV[i], ARGV[i + 2]) == 1 then
            redis.call('RPUSH', KEYS[3], ARGV[i])
            if ARGV[i + 1] == 'r' then
                redis.call('RPUSH', KEYS[4], ARGV[i])
            elseif ARGV[i + 1] == 'f' then
                redis.call('SADD', KEYS[5], ARGV[i])
            end
        end
    end
else
    redis.call('HSET', KEYS[1], 'state', ARGV[3], 'changed', ARGV[1], 'finished', ARGV[4], 'relevant', ARGV[5],
               'failed', ARGV[6], 'cost', ARGV[7])
    redis.call('SET', KEYS[6], ARGV[4])
end
return redis.call('HLEN', KEYS[2])

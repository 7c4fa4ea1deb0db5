-- Copies an archived run back from MySQL, before it is reopened: in steps, each refused once it has
-- been reopened.
--   key status
--   key results
--   key arrivals
--   key relevant
--   key failed
--   key progress
--   arg changed: changed_at of its row, ms
--   arg step: 'begin': what is left of the run in Redis goes. 'add': papers. 'end': the status
--   args words: of 'add', three for each paper: DOI; 'r' relevant, 'n' not, 'f' failed; the result.
--        Of 'end': state, finished, relevant, failed, cost. Of 'begin': none
-- Returns how many results are there; -1: a later version reopened it: nothing was done.
-- Idempotent.
local changed = redis.call('HGET', KEYS.status, 'changed')
if changed and tonumber(changed) > tonumber(ARGV.changed) then
    return -1
end
if ARGV.step == 'begin' then
    redis.call('UNLINK', KEYS.results, KEYS.arrivals, KEYS.relevant, KEYS.failed, KEYS.progress)
elseif ARGV.step == 'add' then
    for i = FIRST.words, #ARGV, 3 do
        local doi, kind, result = unpack(ARGV, i, i + 2)
        if redis.call('HSETNX', KEYS.results, doi, result) == 1 then
            redis.call('RPUSH', KEYS.arrivals, doi)
            if kind == 'r' then
                redis.call('RPUSH', KEYS.relevant, doi)
            elseif kind == 'f' then
                redis.call('SADD', KEYS.failed, doi)
            end
        end
    end
else
    local state, finished, relevant, failed, cost = unpack(ARGV, FIRST.words)
    redis.call('HSET', KEYS.status, 'state', state, 'changed', ARGV.changed, 'finished', finished,
               'relevant', relevant, 'failed', failed, 'cost', cost)
    redis.call('SET', KEYS.progress, finished)
end
return redis.call('HLEN', KEYS.results)

-- Puts results back that Redis has lost and MySQL has: they were paid for (BIL-4).
--   key results
--   key status
--   key progress
--   key failed
--   key arrivals
--   key relevant
--   arg generation: in which it was found that they are lost
--   args papers: four for each: DOI, 1 if it is relevant, cents, result
-- The keys belong to one run of a user. It is done in one generation only, before the balance is
-- loaded there: a later one may have the results.
-- Returns 1, or 0: Redis has another generation by now; nothing was done. Idempotent.
if GENERATION ~= ARGV.generation then
    return 0
end
redis.call('HDEL', KEYS.status, 'fresh') -- units_put may have set it
for i = FIRST.papers, #ARGV, 4 do
    local doi, relevant, cents, result = unpack(ARGV, i, i + 3)
    local mended = redis.call('SISMEMBER', KEYS.failed, doi)
    if mended == 1 or redis.call('HEXISTS', KEYS.results, doi) == 0 then
        redis.call('HSET', KEYS.results, doi, result) -- first: without memory it is refused
        redis.call('SREM', KEYS.failed, doi)
        redis.call('HINCRBY', KEYS.status, 'relevant', relevant)
        redis.call('HINCRBY', KEYS.status, 'cost', cents)
        if mended == 1 then
            redis.call('HINCRBY', KEYS.status, 'failed', -1)
        else
            redis.call('HINCRBY', KEYS.status, 'finished', 1)
            redis.call('INCR', KEYS.progress)
            redis.call('RPUSH', KEYS.arrivals, doi)
        end
        if relevant == '1' then
            redis.call('RPUSH', KEYS.relevant, doi)
        end
    end
end
return 1

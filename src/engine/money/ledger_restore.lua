-- Puts results back that Redis has lost and MySQL has: they were paid for (BIL-4).
-- Done in one run of the server only, before its balance is loaded there: a later one may have them.
-- KEYS: the ledger of one user; results, status, progress, failed papers, arrivals, relevant papers of one
--       run of that user.
-- ARGV: the run id of the server; then four for each paper: DOI, 1 if it is relevant, cents, result.
-- Returns 1, or 0: the server is another one; nothing was done. Safe to repeat.
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
if run ~= ARGV[1] then
    return 0
end
redis.call('HDEL', KEYS[3], 'fresh') -- units_put may have been before
for i = 2, #ARGV, 4 do
    local mended = redis.call('SISMEMBER', KEYS[5], ARGV[i])
    if mended == 1 or redis.call('HEXISTS', KEYS[2], ARGV[i]) == 0 then
        redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 3]) -- first: without memory it is refused
        redis.call('SREM', KEYS[5], ARGV[i])
        redis.call('HINCRBY', KEYS[3], 'relevant', ARGV[i + 1])
        redis.call('HINCRBY', KEYS[3], 'cost', ARGV[i + 2])
        if mended == 1 then
            redis.call('HINCRBY', KEYS[3], 'failed', -1)
        else
            redis.call('HINCRBY', KEYS[3], 'finished', 1)
            redis.call('INCR', KEYS[4])
            redis.call('RPUSH', KEYS[6], ARGV[i])
        end
        if ARGV[i + 1] == '1' then
            redis.call('RPUSH', KEYS[7], ARGV[i])
        end
    end
end
return 1

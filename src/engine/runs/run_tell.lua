-- Brings what a row of query_log promises to Redis, unless Redis has heard of something later.
-- KEYS: info, status, pause signal, terminate signal, pending, inflight of one run; then its other keys: results, arrivals,
--       relevant papers, failed papers, progress.
-- ARGV: state; changed_at in ms, which numbers the promises; reason; question; search_params as JSON; papers; when it
--       was submitted, ms; 1 if it was DONE once.
-- Returns {done, state}: done 1: told now; 0: nothing new. state as it is then. Safe to repeat.
--
-- Redis may be ahead by itself: DONE is made by whoever finishes the last unit. A promise to run, wait or pause that was made
-- before that was known does not take it back; the row will be DONE, too, once that worker has told it. But a run that
-- was DONE once in the row, too, and shall be RUNNING, is to try its failed papers again: it is split anew, whether Redis knew
-- that it was DONE or has come back older. Papers that have a verdict are passed over.
local state, changed = ARGV[1], tonumber(ARGV[2])
local was = redis.call('HMGET', KEYS[2], 'state', 'changed', 'retry')
if was[2] and tonumber(was[2]) >= changed then
    return {0, was[1]}
end
local again = state == 'RUNNING' and ARGV[8] == '1'
if was[1] == 'DONE' and not again and (state == 'QUEUED' or state == 'RUNNING' or state == 'PAUSED') then
    return {0, was[1]}
end
if again and (was[1] == 'DONE' or not was[3]) then
    redis.call('HDEL', KEYS[2], 'total_blocks', 'finished_blocks')
    redis.call('UNLINK', KEYS[5], KEYS[6])
    redis.call('HSET', KEYS[2], 'retry', '1')
end
redis.call('HSET', KEYS[1], 'question', ARGV[4], 'search_params', ARGV[5], 'created', ARGV[7])
redis.call('HSET', KEYS[2], 'state', state, 'changed', ARGV[2], 'reason', ARGV[3], 'papers', ARGV[6])
if state == 'PAUSED' then
    redis.call('SET', KEYS[3], '1')
else
    redis.call('DEL', KEYS[3])
end
if state == 'QUEUED' or state == 'RUNNING' or state == 'PAUSED' then
    for _, key in ipairs(KEYS) do
        redis.call('PERSIST', key) -- it may have been archived; from now on run_expire refuses
    end
end
if state == 'CANCELLED' then
    redis.call('SET', KEYS[4], '1')
    redis.call('UNLINK', KEYS[5], KEYS[6])
end
return {1, state}

-- Writes a version of a row of query_log to Redis, unless Redis has a later one.
--   key info
--   key status
--   key pause
--   key terminate
--   key pending
--   key inflight
--   key vain
--   key unfinished: of the user; it is read again after a change
--   keys others: of the run: results, arrivals, relevant papers, failed papers, progress
--   arg state
--   arg changed: changed_at in ms, which numbers the promises
--   arg reason
--   arg question
--   arg params: search_params as JSON
--   arg papers
--   arg submitted: when, ms
--   arg started: likewise, 0: not yet
--   arg ended: likewise
--   arg original: the run that is distilled, '' if none is
--   arg simulated: '1' if verdicts of it are of the simulated AI
--   arg reopened: '1' if it was DONE once
-- Redis may be ahead of the row: the worker that finishes the last unit makes the run DONE. A
-- version with QUEUED, RUNNING or PAUSED that was written before does not undo it; the row becomes
-- DONE, too, once that worker has written it. But a run that was DONE once in the row and is to be
-- RUNNING again retries its failed papers: it is split anew, whether Redis has it as DONE or came
-- back older. Papers that have a verdict are skipped.
-- And a row may be owed a pause or an end that came while MySQL was away (owed.h): until it has
-- that, the state of Redis stays, unless the run has ended otherwise.
-- Returns {done, state}: done 1: written now; 0: nothing new. state as it is then. Idempotent.
redis.call('DEL', KEYS.unfinished)
local state, changed = ARGV.state, tonumber(ARGV.changed)
local was = redis.call('HMGET', KEYS.status, 'state', 'changed', 'retry', 'owed')
if was[2] and tonumber(was[2]) >= changed then
    return {0, was[1]}
end
local works = state == 'QUEUED' or state == 'RUNNING' or state == 'PAUSED'
local again = state == 'RUNNING' and ARGV.reopened == '1'
if was[1] == 'DONE' and works and not again then
    return {0, was[1]}
end
if was[4] and works then
    state = string.match(was[4], '^%u+')
    works = state == 'PAUSED'
    again = false
end
if again and (was[1] == 'DONE' or not was[3]) then
    redis.call('HDEL', KEYS.status, 'total_blocks', 'finished_blocks')
    redis.call('UNLINK', KEYS.pending, KEYS.inflight, KEYS.vain)
    redis.call('HSET', KEYS.status, 'retry', '1')
end
redis.call('HSET', KEYS.info, 'question', ARGV.question, 'search_params', ARGV.params,
           'created', ARGV.submitted, 'started', ARGV.started, 'ended', ARGV.ended,
           'original', ARGV.original, 'simulated', ARGV.simulated)
redis.call('HSET', KEYS.status, 'state', state, 'changed', ARGV.changed, 'reason', ARGV.reason,
           'papers', ARGV.papers)
if state == 'PAUSED' then
    redis.call('SET', KEYS.pause, '1')
else
    redis.call('DEL', KEYS.pause)
end
if works then
    for _, key in ipairs(KEYS) do
        redis.call('PERSIST', key) -- it may have been archived; from now on run_expire refuses
    end
end
if state == 'CANCELLED' then
    redis.call('SET', KEYS.terminate, '1')
end
if not works then
    redis.call('UNLINK', KEYS.pending, KEYS.inflight, KEYS.vain) -- an older Redis may have some
end
return {1, state}

-- The rows of a queue have been pushed: it is whole in this Redis, and open unless it is paused.
--   key state
--   arg run: generation that was seen before the rows were read
--   arg seen: MySQL's clock, at the begin of the round
--   arg was: the switch 'paused' here before MySQL was asked: 1, 0, or '' for none
--   arg paused: what MySQL says: 1 or 0
-- A switch that was changed here meanwhile stays: MySQL may have been asked before that.
-- Returns 1, or 0: Redis was restarted meanwhile, and nothing was changed. Idempotent.
if ARGV.run ~= GENERATION then
    return 0
end
if (redis.call('HGET', KEYS.state, 'paused') or '') == ARGV.was then
    redis.call('HSET', KEYS.state, 'paused', ARGV.paused)
end
redis.call('HSET', KEYS.state, 'run', GENERATION, 'seen', ARGV.seen)
return 1

-- Before MySQL answers requests that have an id: from now on no list answers them, unless one has.
--   key state
--   keys requests
--   arg ms: how long a request is known
-- For a while MySQL is asked about all requests of the group first: not every one that it answers
-- could be marked.
-- Returns for each request the ids of the items that it was given from a list, as JSON; '': none,
-- and it is marked now. Idempotent but for the time.
redis.call('HSET', KEYS.state, 'asks', redis.call('TIME')[1] .. '000')
local out = {}
for i = FIRST.requests, #KEYS do
    local known = redis.call('GET', KEYS[i])
    if not known then
        redis.call('SET', KEYS[i], 'mysql', 'PX', ARGV.ms)
    end
    out[#out + 1] = known and known ~= 'mysql' and known or ''
end
return out

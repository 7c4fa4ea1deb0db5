-- Counts jobs of one kind that a user starts, in their minute, day and month: in all three, or, if
-- one of them is full, in none.
--   key limits: of the user
--   arg kind
--   arg count: of jobs; 0: nothing is counted; below 0: so many are given back
--   arg taken: those were counted then, s since 1970; 0 if none are given back
--   args most: jobs of the minute, day and month; 0: any number
-- limits is a hash: "<kind>:<period>" -> start of the period, s since 1970, and jobs in it. Another
-- period begins with none.
-- Returns {0, or which period is full: of several the one that ends last; the time, s since 1970;
-- then for each period how many are counted, and when it ends}. Not idempotent: a repeat counts
-- again, up to the limit.
local NAMES = {'minute', 'day', 'month'}
local count = tonumber(ARGV.count)
local second = tonumber(redis.call('TIME')[1])
local starts, ends = PERIODS(second)
local used, full, reply = {}, 0, {0, second}
for i, name in ipairs(NAMES) do
    local text = redis.call('HGET', KEYS.limits, ARGV.kind .. ':' .. name)
    local start, jobs = string.match(text or '', '^(%d+) (%d+)$')
    used[i] = tonumber(start) == starts[i] and tonumber(jobs) or 0
    local most = tonumber(ARGV[FIRST.most + i - 1])
    if count > 0 and most > 0 and used[i] + count > most then
        full = i
    end
end
for i, name in ipairs(NAMES) do
    local of_period = count > 0 and full == 0 or count < 0 and tonumber(ARGV.taken) >= starts[i]
    if of_period then
        used[i] = math.max(0, used[i] + count)
        redis.call('HSET', KEYS.limits, ARGV.kind .. ':' .. name,
                   string.format('%.0f %.0f', starts[i], used[i]))
    end
    reply[#reply + 1] = used[i]
    reply[#reply + 1] = ends[i]
end
reply[1] = full
return reply

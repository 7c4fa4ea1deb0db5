-- Gives back jobs that are not done: they wait again, at once or after a delay, are held with all
-- other jobs of their user, or are set aside.
--   key waiting
--   key delays
--   key leases
--   key info
--   key held
--   key probes
--   key state
--   key aside
--   key wake
--   args jobs: six for each: id, lease, delay (ms; -1: it is set aside, and its tries begin anew),
--        priority, tried (1: the try counts; 0: it does not), hold (0, or ms until one of the
--        user's jobs is tried again)
-- All keys are of one queue; info, aside and wake as in jobs_push.lua, held and probes as in
-- jobs_take.lua. A later version that was pushed meanwhile waits at once, and its tries begin anew.
-- Returns for each job: 1: done. 0: another holder has it, or none; nothing was changed, and a
-- repeat ends so.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local out, wakes = {}, false
for i = FIRST.jobs, #ARGV, 6 do
    local id, delay, priority, hold = ARGV[i], tonumber(ARGV[i + 2]), ARGV[i + 3], ARGV[i + 5]
    local version, tries, _, order, uid, since, lease, next =
        string.match(redis.call('HGET', KEYS.info, id) or '',
                     '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (%S+)$')
    if lease ~= ARGV[i + 1] then
        out[#out + 1] = 0
    else
        if ARGV[i + 4] == '0' then
            tries = tries - 1
        end
        if next ~= '-' then
            version, priority, order = string.match(next, '^(%d+),(%d+),(%d+)$')
            tries, delay, hold = 0, 0, '0'
        elseif delay < 0 then
            tries = 0
        end
        redis.call('ZREM', KEYS.leases, id)
        redis.call('HSET', KEYS.info, id, version .. ' ' .. tries .. ' ' .. priority .. ' ' ..
                   order .. ' ' .. uid .. ' ' .. since .. ' - -')
        if hold ~= '0' then
            redis.call('ZADD', KEYS.held, uid, string.format('%03d%014.0f', priority, order) .. id)
            redis.call('ZADD', KEYS.probes, now + hold, uid)
            redis.call('HDEL', KEYS.state, 'c' .. uid)
        elseif delay > 0 then
            redis.call('ZADD', KEYS.delays, now + delay, id)
        elseif delay < 0 then
            redis.call('ZADD', KEYS.aside, now, id)
        else
            wakes = true
            redis.call('ZADD', KEYS.waiting,
                       string.format('%.0f', tonumber(priority) * 2 ^ 45 + tonumber(order)), id)
        end
        out[#out + 1] = 1
    end
end
if wakes then -- this node may be about to end
    redis.call('XADD', KEYS.wake, 'MAXLEN', 1, '*', 'at', now)
end
return out

-- Hands out items of a group to several pops, in the order of the list and of the pops.
--   key list
--   key state
--   keys requests: of the pops that have a request id, in their order
--   arg partial: '1': a pop may get fewer items than it asks for, but not none
--   arg checked: '1': MySQL has answered none of these requests
--   arg ms: how long a request is known
--   arg total: of all pops
--   args pops: for each, how many items it asks for; negative if it has a request id
-- Every item that was ever in the list has a number, and the numbers of those in it follow each
-- other: state.first is that of the next one. No number above state.limit leaves it.
-- Returns a list: why it stopped before the last pop (0: it did not. 1: the limit is reached. 2:
-- the list is too short. 3: this Redis has no list that counts. 4: MySQL may have answered the
-- request and must be asked; if it was asked, it must answer, for pool_asked.lua has marked it),
-- state.list, state.first, state.limit, state.marked, items in the list; then for each pop that was
-- served its items, or the ids of those that its request was given before, as JSON. 5: all were
-- served, and their items follow in one list: so it mostly is.
-- Not idempotent: a reply that is lost has handed out items. A request id makes it so.
local found = redis.call('HMGET', KEYS.state, 'generation', 'list', 'first', 'limit', 'marked',
                         'asks')
if found[1] ~= GENERATION then
    return {3}
end
local length = redis.call('LLEN', KEYS.list)
local first, limit = tonumber(found[3]), tonumber(found[4])
local total = tonumber(ARGV.total)
if #KEYS < FIRST.requests and total <= length and total <= limit - first + 1 then
    local items = redis.call('RPOP', KEYS.list, total)
    first = redis.call('HINCRBY', KEYS.state, 'first', total)
    return {5, found[2], first, limit, tonumber(found[5]), length - total, items}
end

local why, request = 0, FIRST.requests - 1
total = 0
local counts, keys, known = {}, {}, {} -- by pop: items it gets; key of its request; ids of before
for i = FIRST.pops, #ARGV do
    local pop, count = #counts + 1, tonumber(ARGV[i])
    if count < 0 then
        request, count = request + 1, -count
        keys[pop] = KEYS[request]
        known[pop] = redis.call('GET', keys[pop])
    end
    if known[pop] == 'mysql' then
        why = 4
        break
    elseif known[pop] then
        count = 0
    elseif keys[pop] and ARGV.checked ~= '1' and found[6] and
        redis.call('TIME')[1] * 1000 - found[6] < tonumber(ARGV.ms) then
        why = 4
        break
    end
    if count > length - total and (ARGV.partial ~= '1' or length == total) then
        why = 2
        break
    end
    count = math.min(count, length - total)
    if count > limit - first + 1 - total then
        why = 1
        break
    end
    counts[pop], total = count, total + count
end

local items = total > 0 and redis.call('RPOP', KEYS.list, total) or {}
if total > 0 then
    first = redis.call('HINCRBY', KEYS.state, 'first', total)
end
local reply = {why, found[2], first, limit, tonumber(found[5]), length - total}
local at = 0
for i, count in ipairs(counts) do
    if known[i] then
        reply[#reply + 1] = known[i]
    else
        local own, ids = {}, {}
        for k = 1, count do
            own[k] = items[at + k]
            ids[k] = keys[i] and string.match(own[k], '^{"id":(%d+)')
        end
        at = at + count
        reply[#reply + 1] = own
        if keys[i] then
            redis.call('SET', keys[i], '[' .. table.concat(ids, ',') .. ']', 'PX', ARGV.ms)
        end
    end
end
return reply

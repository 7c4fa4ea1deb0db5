-- A node says how many workers it has for the runs of one user, and asks for more. All living nodes together never
-- have more of one user than the user's permission.
-- KEYS: the workers of one user, by run and node.
-- ARGV: the permission; the node's incarnation; how many nodes live; their incarnations; then three for each run: its id, the
--       workers the node has, and how many it wants.
-- Returns how many it may have, for each run: never less than it has. Safe to repeat.
local permission, own, count = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local living, total = {}, 0
for i = 4, 3 + count do
    living[ARGV[i]] = true
end
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
    local node = string.match(all[i], '[^:]*$')
    if node == own or not living[node] then
        redis.call('HDEL', KEYS[1], all[i])
    else
        total = total + tonumber(all[i + 1])
    end
end
for i = 4 + count, #ARGV, 3 do
    total = total + tonumber(ARGV[i + 1])
end
local granted = {}
for i = 4 + count, #ARGV, 3 do
    local has, wants = tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
    local more = math.max(0, math.min(wants - has, permission - total))
    total = total + more
    granted[#granted + 1] = has + more
    if has + more > 0 then
        redis.call('HSET', KEYS[1], ARGV[i] .. ':' .. own, has + more)
    end
end
return granted

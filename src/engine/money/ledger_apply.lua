-- Adds moves that were made in MySQL to a user's balance: in order, each once.
-- Where there is no balance, or only one of an earlier run of the server, none is made. The number is
-- kept all the same, so that a slow loader with a row from before the move is refused.
-- KEYS: the balance, the ledger of one user.
-- ARGV: number and cents of each move, in order: number, cents, number, cents, ...
-- Returns {loaded, balance, move, applied}: loaded 1 and the balance, or 0 and 0; the last move that
-- is in it; how many were new. A gap before a number ends it: move is lower than that number then.
-- Safe to repeat.
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local was = redis.call('HMGET', KEYS[2], 'run', 'move')
local move = tonumber(was[2] or 0)
local loaded = was[1] == run and redis.call('EXISTS', KEYS[1]) == 1
local applied = 0
for i = 1, #ARGV, 2 do
    local number = tonumber(ARGV[i])
    if number > move then
        if loaded and number ~= move + 1 then
            break
        end
        if loaded then
            redis.call('INCRBY', KEYS[1], ARGV[i + 1])
            applied = applied + 1
        end
        move = number
        redis.call('HSET', KEYS[2], 'move', ARGV[i])
    end
end
return {loaded and 1 or 0, loaded and tonumber(redis.call('GET', KEYS[1])) or 0, move, applied}

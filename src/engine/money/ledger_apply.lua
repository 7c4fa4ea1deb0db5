-- Adds moves that were made in MySQL to a user's balance: in order, each once.
--   key balance
--   key ledger
--   args moves: number, cents, number, cents, ... in order
-- Where there is no balance, or only one of an earlier generation, none is added. The number is
-- kept all the same, so that a slow loader with a row from before the move is refused.
-- Returns {loaded, balance, move, applied}: loaded 1 and the balance, or 0 and 0; the last move
-- that is in it; how many were new. A gap before a number ends it: move is lower than that number
-- then. Idempotent.
local was = redis.call('HMGET', KEYS.ledger, 'run', 'move')
local move = tonumber(was[2] or 0)
local loaded = was[1] == GENERATION and redis.call('EXISTS', KEYS.balance) == 1
local applied = 0
for i = FIRST.moves, #ARGV, 2 do
    local number = tonumber(ARGV[i])
    if number > move then
        if loaded and number ~= move + 1 then
            break
        end
        if loaded then
            redis.call('INCRBY', KEYS.balance, ARGV[i + 1])
            applied = applied + 1
        end
        move = number
        redis.call('HSET', KEYS.ledger, 'move', ARGV[i])
    end
end
return {loaded and 1 or 0, loaded and tonumber(redis.call('GET', KEYS.balance)) or 0, move, applied}

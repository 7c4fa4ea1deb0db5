-- A user's balance, and what works of that user that are not finished have cost so far, in one
-- step: a charge changes both, and must not be seen in one of them alone.
--   key balance
--   key ledger
--   keys works: the status of each: a hash with state and cost
-- Returns {balance, cost, done, cost, done, ...}. balance -1: there is none of this generation.
-- done 1: the work is DONE here. A status that is missing costs 0 and is not done. Changes nothing.
local balance = redis.call('GET', KEYS.balance)
if not balance or redis.call('HGET', KEYS.ledger, 'run') ~= GENERATION then
    balance = -1
end
local seen = {tonumber(balance)}
for i = FIRST.works, #KEYS do
    local status = redis.call('HMGET', KEYS[i], 'cost', 'state')
    seen[#seen + 1] = tonumber(status[1] or 0)
    seen[#seen + 1] = status[2] == 'DONE' and 1 or 0
end
return seen

-- MySQL had no items for requests that were marked: a list may answer them again.
--   keys requests
-- Returns how many. Idempotent.
local count = 0
for i = FIRST.requests, #KEYS do
    if redis.call('GET', KEYS[i]) == 'mysql' then
        count = count + redis.call('DEL', KEYS[i])
    end
end
return count

-- What a charge costs Redis: the result of a paper and the money for it, in one step.
-- KEYS: balance, results, billing queue, its sequence number, progress
-- ARGV: cents, DOI, result, time
-- Returns 1: charged. 2: this paper has its result already. 3: too little left.
local balance = tonumber(redis.call('GET', KEYS[1]) or '0')
local cents = tonumber(ARGV[1])
if balance < cents then
    return 3
end
if redis.call('HSETNX', KEYS[2], ARGV[2], ARGV[3]) == 0 then
    return 2
end
redis.call('DECRBY', KEYS[1], cents)
local seq = redis.call('INCR', KEYS[4])
redis.call('RPUSH', KEYS[3],
    '{"seq":' .. seq .. ',"timestamp":' .. ARGV[4] .. ',"qid":"q1","doi":"' .. ARGV[2] ..
    '","cost":' .. cents .. '}')
redis.call('INCR', KEYS[5])
return 1

-- Charges papers of one run: result, money, record and progress of each, or nothing of it.
-- Papers are taken in order, as if each had come alone. All is decided before anything is written, so
-- that no half of it can be left behind.
-- KEYS: the balance, the ledger, the billing queue of one user; results, status, progress, failed
--       papers, arrivals, relevant papers of one run of that user.
-- ARGV: five for each paper: DOI; 'r' relevant, 'n' not, 'f' failed (0 cents); cents; the result; the
--       record as JSON from after its opening brace and seq.
-- Returns a status for each paper. 1: done. 2: it has a result already, which stays; only a failure is
-- replaced, by a verdict. 0: too little money is left for it. Or one status for all: -1: there is no
-- balance of this run of the server. -2: the run is neither RUNNING nor PAUSED. Safe to repeat: what
-- was done before is 2 then.
local state = redis.call('HGET', KEYS[5], 'state')
if state ~= 'RUNNING' and state ~= 'PAUSED' then
    return {-2}
end
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local balance = redis.call('GET', KEYS[1])
if not balance or redis.call('HGET', KEYS[2], 'run') ~= run then
    return {-1}
end

local dois = {}
for i = 1, #ARGV, 5 do
    dois[#dois + 1] = ARGV[i]
end
local had = {} -- DOI -> 'v' a verdict, 'f' a failure
for i, result in ipairs(redis.call('HMGET', KEYS[4], unpack(dois))) do
    if result then
        had[dois[i]] = redis.call('SISMEMBER', KEYS[7], dois[i]) == 1 and 'f' or 'v'
    end
end

local left = tonumber(balance)
local cost, finished, failed = 0, 0, 0
local status, results, records, failures, mended = {}, {}, {}, {}, {}
local arrived, found = {}, {} -- in order; a failure that becomes a verdict keeps its place
for i, doi in ipairs(dois) do
    local at = 5 * i - 4
    local kind, cents = ARGV[at + 1], tonumber(ARGV[at + 2])
    if had[doi] == 'v' or (had[doi] and kind == 'f') then
        status[i] = 2
    elseif cents > left then
        status[i] = 0
    else
        status[i] = 1
        results[#results + 1] = doi
        results[#results + 1] = ARGV[at + 3]
        if had[doi] then
            mended[#mended + 1] = doi
            failed = failed - 1
        else
            finished = finished + 1
            arrived[#arrived + 1] = doi
        end
        if kind == 'f' then
            failures[#failures + 1] = doi
            failed = failed + 1
            had[doi] = 'f'
        else
            records[#records + 1] = ARGV[at + 4]
            left = left - cents
            cost = cost + cents
            had[doi] = 'v'
            if kind == 'r' then
                found[#found + 1] = doi
            end
        end
    end
end

if #results > 0 then
    redis.call('HSET', KEYS[4], unpack(results))
end
if #records > 0 then
    redis.call('DECRBY', KEYS[1], string.format('%.0f', cost))
    local before = redis.call('HINCRBY', KEYS[2], 'seq', #records) - #records
    for i, tail in ipairs(records) do
        records[i] = '{"seq":' .. string.format('%.0f', before + i) .. ',' .. tail
    end
    redis.call('RPUSH', KEYS[3], unpack(records))
end
if #failures > 0 then
    redis.call('SADD', KEYS[7], unpack(failures))
end
if #mended > 0 then
    redis.call('SREM', KEYS[7], unpack(mended))
end
if finished > 0 then
    redis.call('INCRBY', KEYS[6], finished)
    redis.call('HINCRBY', KEYS[5], 'finished', finished)
    redis.call('RPUSH', KEYS[8], unpack(arrived))
end
if #found > 0 then
    redis.call('HINCRBY', KEYS[5], 'relevant', #found)
    redis.call('RPUSH', KEYS[9], unpack(found))
end
if failed ~= 0 then
    redis.call('HINCRBY', KEYS[5], 'failed', failed)
end
if cost > 0 then
    redis.call('HINCRBY', KEYS[5], 'cost', string.format('%.0f', cost))
end
return status

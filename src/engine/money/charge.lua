-- Charges papers of one run: result, money, record and progress of each, or nothing of it.
--   key balance
--   key ledger
--   key queue
--   key results
--   key status
--   key progress
--   key failed
--   key arrivals
--   key relevant
--   arg count: of papers
--   arg kinds: a letter for each paper: 'r' relevant, 'n' not, 'f' failed
--   arg prices: the cents of each with spaces between, or one number for all; a failure costs
--        nothing, whatever stands there
--   arg record: as JSON, from after its seq to within the quotes of its DOI
--   arg sums: of the text of each record, see record.c: four bytes each
--   args papers: DOI and result of each; then the DOI of each as it stands in JSON, but only if one
--        of them is another there
-- balance, ledger and queue (of records that are not in MySQL yet) belong to one user, the other
-- keys to one run of that user. Papers are taken in order, as if each had come alone. All is
-- decided before anything is written, so that no half of it can be left behind.
-- Returns 1: all are done. -1: there is no balance of this generation. -2: the run is neither
-- RUNNING nor PAUSED. -3: there is no such run. Or a list, for each paper: 1: done. 2: it has a
-- result already, which stays; only a failure is replaced, by a verdict. 0: too little money is
-- left for it. Idempotent: what was done before is 2 then.
--
-- Redis hashes each byte that becomes a string of Lua, and makes an object of it again for every
-- command. So what papers share comes once; and where they are all new, cost the same and can be
-- paid, as nearly always, their arguments are written as they came.
local RELEVANT, FAILED = 114, 102 -- letters
local HEAD = FIRST.papers - 1     -- arguments before the first DOI
local state = redis.call('HGET', KEYS.status, 'state')
if state ~= 'RUNNING' and state ~= 'PAUSED' then
    return state and -2 or -3
end
local balance = redis.call('GET', KEYS.balance)
if not balance or redis.call('HGET', KEYS.ledger, 'run') ~= GENERATION then
    return -1
end

local count, left, price = tonumber(ARGV.count), tonumber(balance), tonumber(ARGV.prices)
local kinds = {string.byte(ARGV.kinds, 1, count)}
local dois = {}
for i = 1, count do
    dois[i] = ARGV[HEAD + 2 * i - 1]
end
local known = redis.call('HMGET', KEYS.results, unpack(dois))

-- What shall be written. The lists are in order; a failure that becomes a verdict keeps its place.
local arrived, found, failures, mended = dois, {}, {}, {}
local charged, cost = count, 0 -- records
local prices, payers           -- of each paper; the papers that pay. Absent: price, all
local failed, status = 0, nil  -- more failures than before; nil: all are done

local plain = price and price * count <= left and not string.find(ARGV.kinds, 'f', 1, true)
for i = 1, count do
    plain = plain and not known[i]
end
if plain then
    cost = price * count
    for i = 1, count do
        if kinds[i] == RELEVANT then
            found[#found + 1] = dois[i]
        end
    end
    -- None was there: if not all are new, one came twice. Then nothing was done, and each is looked
    -- at.
    if redis.call('HSET', KEYS.results, unpack(ARGV, HEAD + 1, HEAD + 2 * count)) < count then
        redis.call('HDEL', KEYS.results, unpack(dois))
        plain = false
    end
end

if not plain then
    local had, results = {}, {} -- had: DOI -> 'v' a verdict, 'f' a failure
    prices, payers, arrived, found, cost, status = {}, {}, {}, {}, 0, {}
    for i = 1, count do
        if known[i] then
            had[dois[i]] = redis.call('SISMEMBER', KEYS.failed, dois[i]) == 1 and 'f' or 'v'
        end
        prices[i] = price
    end
    if not price then
        for cents in string.gmatch(ARGV.prices, '%d+') do
            prices[#prices + 1] = tonumber(cents)
        end
    end
    for i, doi in ipairs(dois) do
        local fails = kinds[i] == FAILED
        local cents = fails and 0 or prices[i]
        if had[doi] == 'v' or (fails and had[doi]) then
            status[i] = 2
        elseif cents > left then
            status[i] = 0
        else
            status[i] = 1
            results[#results + 1] = doi
            results[#results + 1] = ARGV[HEAD + 2 * i]
            if had[doi] then
                mended[#mended + 1] = doi
                failed = failed - 1
            else
                arrived[#arrived + 1] = doi
            end
            if fails then
                failures[#failures + 1] = doi
                failed = failed + 1
                had[doi] = 'f'
            else
                payers[#payers + 1] = i
                left = left - cents
                cost = cost + cents
                had[doi] = 'v'
                if kinds[i] == RELEVANT then
                    found[#found + 1] = doi
                end
            end
        end
    end
    charged = #payers
    if #results > 0 then
        redis.call('HSET', KEYS.results, unpack(results))
    end
end

if charged > 0 then
    redis.call('DECRBY', KEYS.balance, string.format('%.0f', cost))
    local seq = redis.call('HINCRBY', KEYS.ledger, 'seq', charged) - charged
    local names, shift = dois, 0 -- of DOIs as they stand in JSON
    if ARGV[HEAD + 2 * count + 1] then
        names, shift = ARGV, HEAD + 2 * count
    end
    local digits = {'1', '2', '3', '4', '5', '6', '7', '8', '9', [0] = '0'}
    local records, middle = {}, ARGV.record
    local open, close, cents -- the same for ten records; for those of one price; this price
    for k = 1, charged do
        local i, digit = payers and payers[k] or k, (seq + k) % 10
        if k == 1 or digit == 0 then
            local tens = (seq + k - digit) / 10
            open = '{"seq":' .. (tens > 0 and string.format('%.0f', tens) or '')
        end
        if k == 1 or (prices and prices[i] ~= cents) then
            cents = prices and prices[i] or price
            close = '","cost":' .. string.format('%.0f', cents) .. ',"sum":"'
        end
        local sum = bit.bxor(struct.unpack('>I4', ARGV.sums, 4 * i - 3), (seq + k) % 4294967296)
        records[k] = open .. digits[digit] .. middle .. names[shift + i] .. close ..
                     bit.tohex(sum) .. '"}'
    end
    redis.call('RPUSH', KEYS.queue, unpack(records))
end
if #failures > 0 then
    redis.call('SADD', KEYS.failed, unpack(failures))
end
if #mended > 0 then
    redis.call('SREM', KEYS.failed, unpack(mended))
end
if #arrived > 0 then
    redis.call('INCRBY', KEYS.progress, #arrived)
    redis.call('HINCRBY', KEYS.status, 'finished', #arrived)
    redis.call('RPUSH', KEYS.arrivals, unpack(arrived))
end
if #found > 0 then
    redis.call('HINCRBY', KEYS.status, 'relevant', #found)
    redis.call('RPUSH', KEYS.relevant, unpack(found))
end
if failed ~= 0 then
    redis.call('HINCRBY', KEYS.status, 'failed', failed)
end
if cost > 0 then
    redis.call('HINCRBY', KEYS.status, 'cost', string.format('%.0f', cost))
end
return status or 1

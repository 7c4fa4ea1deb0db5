-- What was permitted in the last minute, second by second, over all keys. Only reads.
--   key ring: of the service
--   keys windows: of API keys
--   arg slot_ms: ms of a slot
--   arg slots: that count
--   arg per_second: slots of a second
-- Returns {keys at rest, requests of 60 seconds, tokens of 60 seconds, requests of jobs in the last
-- minute or so, their tokens}, seconds oldest first; the last one is the current second.
local SLOT_MS, SLOTS = tonumber(ARGV.slot_ms), tonumber(ARGV.slots)
local PER_SECOND = tonumber(ARGV.per_second)
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local slot = math.floor(now / SLOT_MS)
local this = math.floor(slot / PER_SECOND)
local reply = {0}
for i = 2, 121 do
    reply[i] = 0
end
for i = FIRST.windows, #KEYS do
    local key = KEYS[i]
    local all = redis.call('HGETALL', key)
    local fields = {}
    for i = 1, #all, 2 do
        fields[all[i]] = tonumber(all[i + 1])
    end
    if (fields.rest or 0) > now then
        reply[1] = reply[1] + 1
    end
    for s = (this - 59) * PER_SECOND, slot do
        if fields.at and s <= fields.at and s > fields.at - SLOTS then
            local second = 61 - (this - math.floor(s / PER_SECOND))
            reply[second] = reply[second] + (fields['r' .. s % SLOTS] or 0)
            reply[second + 60] = reply[second + 60] + (fields['t' .. s % SLOTS] or 0)
        end
    end
end
local jobs = redis.call('HGET', KEYS.ring, 'jobs')
local r, t, when = string.match(jobs or '', '^(%S+) (%S+) (%d+)$')
local kept = when and math.exp(-math.abs(now - when) / (SLOT_MS * PER_SECOND * 60)) or 0
reply[122], reply[123] = math.floor((r or 0) * kept), math.floor((t or 0) * kept)
return reply

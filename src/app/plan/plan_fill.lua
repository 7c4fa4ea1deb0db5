-- Puts what MySQL has of a user's plans into Redis, unless it has changed since it was read.
--   key fence
--   key training
--   key nutrition
--   keys entries: what is filled
--   arg run: generation that this Redis had before MySQL was read
--   arg version: of the user's plans, read together with the rest
--   arg training_id: of the active plan; '': none is; '?': not known
--   arg nutrition_id: likewise
--   args values: for each of the entries: ms to live (0: no end), number of texts, the texts:
--        field, value, ... of a hash, or the one text of a string
-- All keys are of one user. fence is a hash: run and version, the number of changes of the user's
-- plans; a hash counts if its field 'seen' is the version of the fence. training and nutrition name
-- the active plans: strings, which are written, or dropped, whenever the fence moves.
-- Returns 1: filled. 0: refused, there is a later version. Idempotent.
if ARGV.run ~= GENERATION then
    return 0
end
local fence = redis.call('HMGET', KEYS.fence, 'run', 'version')
local known = fence[1] == GENERATION and tonumber(fence[2])
if known and known > tonumber(ARGV.version) then
    return 0
end
if known ~= tonumber(ARGV.version) then
    redis.call('HSET', KEYS.fence, 'run', GENERATION, 'version', ARGV.version)
    for key, id in pairs({[KEYS.training] = ARGV.training_id,
                          [KEYS.nutrition] = ARGV.nutrition_id}) do
        redis.call('DEL', key)
        if id ~= '' and id ~= '?' then
            redis.call('SET', key, id)
        end
    end
end
local at = FIRST.values
for i = FIRST.entries, #KEYS do
    local ms, count = ARGV[at], tonumber(ARGV[at + 1])
    redis.call('DEL', KEYS[i])
    if count == 1 then
        redis.call('SET', KEYS[i], ARGV[at + 2])
    else
        redis.call('HSET', KEYS[i], 'seen', ARGV.version, unpack(ARGV, at + 2, at + 1 + count))
    end
    if ms ~= '0' then
        redis.call('PEXPIRE', KEYS[i], ms)
    end
    at = at + 2 + count
end
return 1

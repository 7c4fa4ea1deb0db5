-- One pop after the other: wrk -s bench/pool_load.lua URL -- PATH TOKEN [DELAY]
-- DELAY: ms between an answer and the next pop of a connection.
local request_bytes, pause

function init(words)
    wrk.method = 'POST'
    wrk.path = words[1]
    wrk.headers['Authorization'] = 'Bearer ' .. words[2]
    request_bytes = wrk.format()
    pause = tonumber(words[3] or 0)
    if pause > 0 then
        function delay()
            return pause
        end
    end
end

function request()
    return request_bytes
end

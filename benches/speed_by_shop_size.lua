-- wrk script of `benches/speed_by_shop_size.py`: sends one kind of request. In the path and the body, a random number replaces `%d`, and a
-- number that is unique among all requests replaces `%u`.
local method, path, body, tickets, number

function init(args)
    wrk.headers["x-api-key"] = args[1]
    math.randomseed(tonumber(args[2]))
    tickets, method, path, body = tonumber(args[3]), args[4], args[5], args[6]
    if body then
        wrk.headers["content-type"] = "application/json"
    end
    -- Each seed has a separate range of numbers, larger than the number of requests in a run.
    number = tonumber(args[2]) * 1e7
    if not (path .. (body or "")):find("%%[du]") then
        local fixed = wrk.format(method, path, nil, body)
        request = function() return fixed end
    end
end

function request()
    -- `%d` becomes a random number below the number of conversations, which is four fifths of the number of tickets.
    number = number + 1
    local numbers = { d = math.random(0, math.floor(tickets * 8 / 10) - 1), u = string.format("%d", number) }
    return wrk.format(method, (path:gsub("%%([du])", numbers)), nil, body and (body:gsub("%%([du])", numbers)))
end

function done(summary, latency)
    local errors = summary.errors
    print(string.format("RESULT %d %.6f %.3f %.3f %d", summary.requests, summary.duration / 1e6, latency:percentile(50) / 1000,
        latency:percentile(99) / 1000, errors.status + errors.connect + errors.read + errors.write + errors.timeout))
end

-- wrk script of `benches/search.sh`: sends queries from a list in turn, over several connections.
local queries = {}

function init(args)
    wrk.headers["x-api-key"] = args[1]
    for i = 2, #args do
        queries[#queries + 1] = "/v1/messages/search?query=" .. args[i]
    end
end

local sent = 0

function request()
    sent = sent + 1
    return wrk.format("GET", queries[sent % #queries + 1])
end

function done(summary, latency)
    local errors = summary.errors
    print(string.format("RESULT %d %.0f %.2f %.2f %d", summary.requests, summary.requests / (summary.duration / 1e6),
        latency:percentile(50) / 1000, latency:percentile(99) / 1000, errors.status + errors.connect + errors.read + errors.write + errors.timeout))
end

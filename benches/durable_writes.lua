-- wrk script of `benches/durable_writes.sh`: posts unique texts to random conversations.
wrk.method = "POST"

local conversations, run

function init(args)
    conversations, run = tonumber(args[1]), args[2]
    wrk.headers["content-type"] = "application/json"
    wrk.headers["x-api-key"] = args[3]
    math.randomseed(tonumber(args[4]))
end

local sent = 0

function request()
    sent = sent + 1
    local body = string.format('{"conversationId":"talk-%d","text":"Text %d of %s, as long as such texts are"}', math.random(conversations), sent, run)
    return wrk.format(nil, nil, nil, body)
end

function done(summary, latency)
    local errors = summary.errors
    local broken = errors.connect + errors.read + errors.write + errors.timeout
    print(string.format("RESULT %.1f %.2f %.2f %d %d %d", summary.requests / (summary.duration / 1e6), latency:percentile(50) / 1000,
        latency:percentile(99) / 1000, summary.requests - errors.status, errors.status, broken))
end

//! Fuzz tests with a fixed seed: random requests, most of them malformed, the same in every run. Every request gets a documented status, no
//! request causes an internal failure, and the server keeps running.

use serde_json::{Value, json};

use crate::{
    client::Call,
    harness::one,
    openapi_documents::{Route, routes},
};

/// The number of requests to each operation.
const ROUNDS: usize = 60;

/// Pseudo-random number generator (xorshift) with a seed, so that a failure can be repeated.
pub struct SeededRandom(pub u64);

impl SeededRandom {
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.roll(choices.len())].clone()
    }
}

/// The names of query parameters from which requests are built: those of all operations of both revisions of the API.
const PARAMETERS: [&str; 16] = [
    "ticketId",
    "conversationId",
    "contactId",
    "userId",
    "accountId",
    "channel",
    "status",
    "category",
    "language",
    "search",
    "searchTerm",
    "pageSize",
    "cursor",
    "page",
    "expand",
    "query",
];

/// The values of query parameters from which requests are built, in the encoding in which they are sent.
const VALUES: [&str; 34] = [
    "",
    "0",
    "-1",
    "1",
    "2",
    "99999999999999999999",
    "1.5",
    "NaN",
    "true",
    "null",
    "%00",
    "%FF%FE",
    "%",
    "%zz",
    "%C0%AF",
    "a%00b",
    "'",
    "%22",
    "%27%20OR%201=1--",
    "%25",
    "_",
    "..%2F..%2Fetc",
    "%F0%9F%92%A9",
    "%E0%B8%AA",
    "%E2%80%AE",
    "+",
    "%0D%0Ax-evil:%201",
    "conv-main",
    "con-mia",
    "t-third",
    "0a000000-0000-4000-8000-000000000001",
    "account,conversation",
    "acc-wa",
    "[]",
];

/// The property names from which bodies are built: most of the filters of lists, and `__proto__`, which no body has.
const PROPERTIES: [&str; 24] = [
    "statuses",
    "labelIds",
    "updatedBefore",
    "conversationId",
    "accountIds",
    "assigneeUserIds",
    "handledByUserIds",
    "resolutionStatuses",
    "unassigned",
    "isFollowUp",
    "isSpam",
    "advancedFilters",
    "labels",
    "ticketFields",
    "waitingForReply",
    "openedAt",
    "operator",
    "value",
    "min",
    "max",
    "ticketFieldId",
    "search",
    "updatedAfter",
    "__proto__",
];

const STRINGS: [&str; 20] = [
    "",
    " ",
    "open",
    "closed",
    "equal",
    "between",
    "contains_any",
    "is_one_of",
    "text_contains",
    "f-text",
    "f-int",
    "f-when",
    "f-multi",
    "\u{0}",
    "\u{fffd}",
    "9999-12-31T23:59:59.999Z",
    "0001-01-01T00:00:00+14:00",
    "2025-01-01T00:00:00Z",
    "'; drop table tickets; --",
    "𝕏\u{202e}\u{200d}",
];

fn query(dice: &mut SeededRandom) -> String {
    let mut pairs = Vec::new();
    for _ in 0..dice.roll(5) {
        let long = "x".repeat(1 + dice.roll(4000));
        let value = if dice.roll(12) == 0 { &long } else { dice.pick(&VALUES) };
        pairs.push(format!("{}={value}", dice.pick(&PARAMETERS)));
    }
    pairs.join(dice.pick(&["&", "&", "&", "&&", ";"]))
}

fn value(dice: &mut SeededRandom, depth: usize) -> Value {
    match dice.roll(if depth > 0 { 12 } else { 8 }) {
        0 => Value::Null,
        1 => json!(dice.roll(2) == 0),
        2 => json!(dice.roll(100) as i64 - 50),
        3 => json!([1.5e300, -0.0, 9_007_199_254_740_993_i64, i64::MIN, u64::MAX])[dice.roll(5)].clone(),
        4..8 => json!(dice.pick(&STRINGS)),
        8 | 9 => (0..dice.roll(12)).map(|_| value(dice, depth - 1)).collect(),
        _ => object(dice, depth - 1),
    }
}

fn object(dice: &mut SeededRandom, depth: usize) -> Value {
    (0..dice.roll(5)).map(|_| (dice.pick(&PROPERTIES).to_owned(), value(dice, depth))).collect()
}

/// Returns a random request body: often JSON with the outline of a valid body, sometimes broken JSON.
fn body(dice: &mut SeededRandom) -> Vec<u8> {
    let mut bytes = match dice.roll(4) {
        0 => value(dice, 4),
        1 => json!({"advancedFilters": object(dice, 3)}),
        2 => {
            let field = json!({
                "ticketFieldId": dice.pick(&["f-text", "f-int", "f-dec", "f-date", "f-when", "f-multi", "f-nums", "f-flag", "salesRevenue"]),
                "operator": dice.pick(&["equal", "not_equal", "greater_than", "between", "is_one_of", "contains_all", "text_contains"]),
                "value": value(dice, 2), "min": value(dice, 0), "max": value(dice, 0),
            });
            json!({"advancedFilters": {"ticketFields": vec![field; 1 + dice.roll(2)]}})
        }
        _ => object(dice, 4),
    }
    .to_string()
    .into_bytes();
    match dice.roll(8) {
        0 => bytes.truncate(dice.roll(bytes.len() + 1)),
        1 if !bytes.is_empty() => {
            let at = dice.roll(bytes.len());
            bytes[at] = dice.roll(256) as u8;
        }
        _ => {}
    }
    bytes
}

fn request(dice: &mut SeededRandom, route: &Route) -> Call {
    let mut call = one().call(&route.method, &route.path).raw_query(&query(dice));
    match dice.roll(6) {
        0 => {
            call =
                call.header("content-type", dice.pick(&["", "text/plain", "application/json;;", "*/*", "application/json; charset=latin1"]))
        }
        1 => call = call.header("x-request-id", dice.pick(&["", "a b", "é", "<script>"])),
        2 => call = call.header("accept", dice.pick(&["text/html", "nonsense", "application/xml;q=1"])),
        3 => call = call.header("accept-encoding", "br, gzip, x-none"),
        4 => call = call.header("content-type", "application/json"),
        _ => {}
    }
    if route.method != "GET" || dice.roll(8) == 0 {
        call = call.bytes(body(dice));
    }
    call
}

#[test]
fn malformed_requests_get_documented_answers_and_the_server_keeps_running() {
    let mut dice = SeededRandom(0x5eed_2025_0001);
    for route in routes() {
        for _ in 0..ROUNDS {
            let answer = request(&mut dice, &route).send();
            assert!([200, 400, 404, 413, 415].contains(&answer.status), "{}", answer.described());
            assert_eq!(answer.header("x-evil"), None, "{}", answer.described());
        }
    }
    one().get("/labels").send().ok();
}

#[test]
fn requests_that_are_hardly_http_do_not_stop_the_server() {
    use std::io::{Read, Write};
    for garbage in [
        "GET\r\n\r\n",
        "GET /v1/labels HTTP/9.9\r\n\r\n",
        "\u{0}\u{1}\u{2}",
        "POST /v1/tickets/list HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        "GET /v1/labels HTTP/1.1\r\n x\r\n\r\n",
        "POST /v1/tickets/list HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ] {
        let mut stream = std::net::TcpStream::connect(&one().address).expect("the server accepts");
        let _ = stream.write_all(garbage.as_bytes());
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let status = String::from_utf8_lossy(&answer).split(' ').nth(1).and_then(|status| status.parse::<u16>().ok());
        assert!(status.is_none_or(|status| (400..500).contains(&status)), "{garbage:?}: {status:?}");
    }
    one().get("/labels").send().ok();
}

//! Tests of early responses, which a server sends before the request body has arrived. Either the connection can be used for further
//! requests once the body has arrived, or the response announces that the server closes the connection.

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{harness::world, settings::SettingsFixture};

/// The pause between sending the head of a request and sending its body.
const BODY_DELAY: Duration = Duration::from_millis(20);

/// A persistent HTTP/1.1 connection, on which a test writes the bytes of several requests itself.
struct PersistentConnection(TcpStream);

/// The status of a response, and whether the server closes the connection after it.
#[derive(Debug, PartialEq, Eq)]
struct ResponseOutcome {
    status: u16,
    closes: bool,
}

impl PersistentConnection {
    fn open() -> Self {
        let stream = TcpStream::connect(&world().server.address).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a time-out");
        Self(stream)
    }

    fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).expect("the server reads");
    }

    /// Reads the next response. Returns `None` if the server closed the connection instead.
    fn answer(&mut self) -> Option<ResponseOutcome> {
        let mut bytes = Vec::new();
        let head = loop {
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break String::from_utf8(bytes[..end].to_vec()).expect("text").to_ascii_lowercase();
            }
            let mut one = [0];
            match self.0.read(&mut one) {
                Ok(1) => bytes.push(one[0]),
                Ok(_) => return None,
                Err(error) if [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe].contains(&error.kind()) => return None,
                Err(error) => panic!("no answer: {error}"),
            }
        };
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        if let Some(length) = header("content-length:") {
            self.0.read_exact(&mut vec![0; length.parse().expect("a length")]).expect("the whole answer");
        }
        Some(ResponseOutcome { status, closes: header("connection:") == Some("close") })
    }

    /// Sends another request on the connection. Returns whether the response is a 200 after which the connection stays open.
    fn goes_on(&mut self) -> bool {
        let get = format!("GET /v1/teams HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\n\r\n", world().one.key.as_deref().unwrap_or_default());
        self.0.write_all(get.as_bytes()).is_ok() && self.answer() == Some(ResponseOutcome { status: 200, closes: false })
    }
}

/// Returns the heads (request line and headers) of requests that the server refuses before their bodies arrive, each with the status of the
/// response.
fn early() -> Vec<(String, u16)> {
    let unscoped = world().server.api("one", &["teams:read"]).key.unwrap_or_default();
    let head = |line: &str, key: &str| format!("{line} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nx-api-key: {key}\r\n");
    vec![
        (head("POST /v1/tickets/list", "nobody's"), 401),
        (head("POST /v1/contacts", ""), 401),
        (head("POST /v1/tickets/list", &unscoped), 403),
        (head("POST /v1/nothing", ""), 404),
        (head("PUT /v1/tickets", ""), 405),
        (head("POST /docs", ""), 405),
        (head("POST /settings/v1/keys", ""), 401),
    ]
}

#[test]
fn a_body_after_its_early_answer_does_not_end_the_connection() {
    let body = json!({"statuses": ["open"]}).to_string();
    for (head, status) in early() {
        let mut connection = PersistentConnection::open();
        for length in [body.len(), 1024 * 1024] {
            let body = body.clone() + &" ".repeat(length - body.len());
            connection.send(format!("{head}content-length: {length}\r\n\r\n").as_bytes());
            let begun = Instant::now();
            assert_eq!(connection.answer(), Some(ResponseOutcome { status, closes: false }), "{head}");
            assert!(begun.elapsed() < Duration::from_secs(2), "the answer waited for the body: {head}");
            thread::sleep(BODY_DELAY);
            connection.send(body.as_bytes());
            assert!(connection.goes_on(), "{head} {length}");
            connection.send(format!("{head}transfer-encoding: chunked\r\n\r\n").as_bytes());
            assert_eq!(connection.answer(), Some(ResponseOutcome { status, closes: false }), "{head}");
            thread::sleep(BODY_DELAY);
            connection.send(format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).as_bytes());
            assert!(connection.goes_on(), "{head} in chunks");
        }
    }
}

#[test]
fn a_body_that_is_too_large_is_answered_and_the_connection_stays() {
    let key = world().one.key.clone().unwrap_or_default();
    let head = format!("POST /v1/tickets/list HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\n");
    let large = vec![b' '; 1024 * 1024 + 1];
    let mut connection = PersistentConnection::open();
    connection.send(format!("{head}content-length: {}\r\n\r\n", large.len()).as_bytes());
    assert_eq!(connection.answer(), Some(ResponseOutcome { status: 413, closes: false }));
    connection.send(&large);
    assert!(connection.goes_on());
    connection.send(format!("{head}transfer-encoding: chunked\r\n\r\n{:x}\r\n", large.len()).as_bytes());
    connection.send(&large);
    assert_eq!(connection.answer(), Some(ResponseOutcome { status: 413, closes: false }));
    thread::sleep(BODY_DELAY);
    connection.send(b"\r\n5\r\nabcde\r\n0\r\n\r\n");
    assert!(connection.goes_on());
}

#[test]
fn an_answer_that_ends_its_connection_announces_that_and_can_be_read() {
    const ENDLESS: usize = 1 << 40;
    for (head, status) in early() {
        let mut connection = PersistentConnection::open();
        connection.send(format!("{head}content-length: {ENDLESS}\r\n\r\n").as_bytes());
        // The client sends body bytes before it reads the response. The response must still arrive.
        connection.send(&vec![b' '; 1024 * 1024]);
        assert_eq!(connection.answer(), Some(ResponseOutcome { status, closes: true }), "{head}");
        drop(connection);
        let mut connection = PersistentConnection::open();
        connection.send(format!("{head}content-length: 2\r\nexpect: 100-continue\r\n\r\n").as_bytes());
        assert_eq!(connection.answer(), Some(ResponseOutcome { status, closes: true }), "{head}");
        connection.send(b"{}");
        assert_eq!(connection.answer(), None, "{head}");
    }
}

#[test]
fn a_body_that_never_comes_ends_the_connection_in_seconds() {
    let (head, status) = early().remove(0);
    let mut connection = PersistentConnection::open();
    connection.send(format!("{head}content-length: 100\r\n\r\n{{").as_bytes());
    assert_eq!(connection.answer(), Some(ResponseOutcome { status, closes: false }));
    let begun = Instant::now();
    assert_eq!(connection.answer(), None);
    assert!((1..20).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

#[test]
fn a_request_that_is_read_whole_keeps_its_connection_open() {
    let fixture = SettingsFixture::open();
    let mut stream = TcpStream::connect(&fixture.api.address).expect("the server listens");
    let body = json!({"name": "", "scopes": []}).to_string();
    let head = format!("POST /settings/v1/keys HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n", fixture.token);
    for _ in 0..3 {
        stream.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).expect("the server reads");
        let mut kept = PersistentConnection(stream.try_clone().expect("a socket"));
        assert_eq!(kept.answer(), Some(ResponseOutcome { status: 400, closes: false }));
    }
}

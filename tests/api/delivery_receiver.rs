//! An HTTP server for tests, to which the server under test sends its deliveries: events for webhooks, and messages for bridges. A bridge
//! is an endpoint that passes the messages of an account on to their channel. This HTTP server records the deliveries, and checks events
//! against their OpenAPI document. The tests check signatures with [`ReceivedDelivery::is_signed_by`], according to Standard Webhooks.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::{contract::event_contract, harness::Settings};

/// How long [`until`] waits for its condition, for example the arrival of a delivery.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(30);

/// Settings of a server that may deliver to endpoints on this machine and simulates every channel.
pub const PRIVATE: Settings<'static> = &[("COUNTERPART_SIMULATE_CHANNELS", "true"), ("COUNTERPART_ALLOW_PRIVATE_TARGETS", "true")];

/// A request that an endpoint received.
#[derive(Clone, Debug)]
pub struct ReceivedDelivery {
    pub headers: HashMap<String, String>,
    pub body: String,
}

impl ReceivedDelivery {
    pub fn id(&self) -> &str {
        &self.headers["webhook-id"]
    }

    /// Whether one of the signatures in the header `webhook-signature` was created with this secret, according to Standard Webhooks.
    pub fn is_signed_by(&self, secret: &str) -> bool {
        let key = BASE64.decode(secret.strip_prefix("whsec_").expect("a secret's form")).expect("a secret's form");
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("any length");
        mac.update(format!("{}.{}.{}", self.id(), self.headers["webhook-timestamp"], self.body).as_bytes());
        let signature = format!("v1,{}", BASE64.encode(mac.finalize().into_bytes()));
        self.headers["webhook-signature"].split(' ').any(|one| one == signature)
    }
}

/// A function that returns the response to a delivery: the status line and the body.
pub type Reply = fn(&ReceivedDelivery) -> (&'static str, String);

/// A local endpoint that responds with 200, unless the test sets another response or delays responses.
#[derive(Clone)]
pub struct Endpoint {
    pub port: u16,
    pub connections: Arc<AtomicUsize>,
    seen: Arc<Mutex<Vec<ReceivedDelivery>>>,
    /// The number of responses that the endpoint may still send. At 0 it receives deliveries but does not respond. `None`: no limit.
    answers: Arc<(Mutex<Option<usize>>, Condvar)>,
    reply: Arc<Mutex<Reply>>,
    /// The errors of deliveries that do not match the OpenAPI document of the events.
    faults: Arc<Mutex<Vec<String>>>,
}

impl Endpoint {
    pub fn open() -> Self {
        Self::replying(|_| ("200 OK", String::new()))
    }

    pub fn replying(reply: Reply) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let endpoint = Self {
            port: listener.local_addr().expect("a port").port(),
            connections: Arc::default(),
            seen: Arc::default(),
            answers: Arc::default(),
            reply: Arc::new(Mutex::new(reply)),
            faults: Arc::default(),
        };
        // The endpoint also listens on the IPv6 loopback address, to which `localhost` may resolve.
        let six = TcpListener::bind(("::1", endpoint.port)).ok();
        for listener in [Some(listener), six].into_iter().flatten() {
            let server = endpoint.clone();
            thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    server.connections.fetch_add(1, Ordering::SeqCst);
                    let server = server.clone();
                    thread::spawn(move || server.talk(stream));
                }
            });
        }
        endpoint
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hooks", self.port)
    }

    fn talk(&self, mut stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let mut headers = HashMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            match line.trim_end().split_once(": ") {
                Some((name, value)) => _ = headers.insert(name.to_ascii_lowercase(), value.to_owned()),
                None if line.trim_end().is_empty() => break,
                None => {}
            }
        }
        let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
        reader.read_exact(&mut body).ok()?;
        let seen = ReceivedDelivery { headers, body: String::from_utf8(body).ok()? };
        if let Err(fault) = event_contract::check_delivery(&seen.headers, &seen.body) {
            self.faults.lock().ok()?.push(fault);
        }
        let (status, said) = (self.reply.lock().ok()?)(&seen);
        self.seen.lock().ok()?.push(seen);
        let (answers, changed) = &*self.answers;
        let mut answers = changed.wait_while(answers.lock().ok()?, |answers| *answers == Some(0)).ok()?;
        *answers = answers.map(|left| left - 1);
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{said}", said.len());
        stream.write_all(answer.as_bytes()).ok()
    }

    /// Lets the endpoint send this many more responses. `None`: no limit.
    pub fn answers(&self, most: Option<usize>) {
        *self.answers.0.lock().expect("not poisoned") = most;
        self.answers.1.notify_all();
    }

    pub fn replies(&self, reply: Reply) {
        *self.reply.lock().expect("not poisoned") = reply;
    }

    pub fn seen(&self) -> Vec<ReceivedDelivery> {
        assert_eq!(*self.faults.lock().expect("not poisoned"), [""; 0]);
        self.seen.lock().expect("not poisoned").clone()
    }

    /// Returns the number of deliveries of each event, by the id of the event.
    pub fn times(&self) -> HashMap<String, usize> {
        let mut times = HashMap::new();
        for seen in self.seen() {
            *times.entry(seen.id().to_owned()).or_default() += 1;
        }
        times
    }
}

#[track_caller]
pub fn until(what: &str, done: impl Fn() -> bool) {
    let deadline = Instant::now() + DELIVERY_TIMEOUT;
    while !done() {
        assert!(Instant::now() < deadline, "timed out before {what}");
        thread::sleep(Duration::from_millis(30));
    }
}

#[track_caller]
pub fn assert_secret(text: &str) {
    let key = text.strip_prefix("whsec_").and_then(|code| BASE64.decode(code).ok());
    assert_eq!(key.map(|key| key.len()), Some(32), "{text}");
}

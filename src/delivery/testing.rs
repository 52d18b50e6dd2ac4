//! What the tests of this room share: a clock that can be moved, and a local endpoint that does as it is told.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::{
    domain::{
        clock::{Clock, RandomIds, World},
        rules::{ReceivedAt, Rules},
        time::Timestamp,
        webhooks::SigningSecret,
    },
    service::{Renderer, Service},
    store::Db,
};

/// When the tests begin.
pub const START: i64 = 1_700_000_000_000;

/// How long an endpoint has in these tests.
pub const SHORT: Duration = Duration::from_millis(400);

/// A clock that stands still until it is moved.
pub struct Hands(AtomicI64);

impl Hands {
    pub fn at_start() -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(START)))
    }

    pub fn pass(&self, millis: i64) {
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

const RULES: Rules = Rules {
    revision: "test",
    max_page_size: 100,
    messages_default_page_size: None,
    messages_max_page_size: 100,
    received_at: ReceivedAt::Timestamp,
    page_echo: false,
    strict_cursors: false,
    conversation_history: true,
    unknown_labels_refused: true,
    user_name_fallback: false,
    template_operation: None,
};

pub fn service(db: Db, clock: Arc<dyn Clock>, events: impl Renderer) -> Service {
    Service::new(db, World { clock, ids: Arc::new(RandomIds) }, RULES, Arc::new(events))
}

/// A request that an endpoint was sent.
#[derive(Clone, Debug)]
pub struct Seen {
    pub line: String,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Seen {
    pub fn id(&self) -> &str {
        &self.headers["webhook-id"]
    }

    pub fn seconds(&self) -> i64 {
        self.headers["webhook-timestamp"].parse().unwrap()
    }

    pub fn signatures(&self) -> Vec<&str> {
        self.headers["webhook-signature"].split(' ').collect()
    }

    pub fn signed_by(&self, secret: &SigningSecret) -> String {
        secret.sign(self.id(), self.seconds(), &self.body)
    }
}

#[derive(Clone, Debug)]
pub enum Reply {
    /// A status line and headers.
    Says(String),
    /// A status line with headers, and a body.
    Answers(String, String),
    /// The same after a while, in which nothing else may come for the event.
    Slowly(&'static str),
    Hang,
    Reset,
    /// Begins an answer and never ends it.
    Drip,
}

/// A local HTTP server.
#[derive(Clone)]
pub struct Endpoint {
    pub url: String,
    pub name: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    reply: Arc<Mutex<Reply>>,
    pub connections: Arc<AtomicUsize>,
    going: Arc<Mutex<Vec<String>>>,
}

impl Endpoint {
    pub async fn new(reply: Reply) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let endpoint = Self {
            url: format!("http://127.0.0.1:{port}/hooks?a=b"),
            name: format!("http://localhost:{port}/hooks?a=b"),
            seen: Arc::default(),
            reply: Arc::new(Mutex::new(reply)),
            connections: Arc::default(),
            going: Arc::default(),
        };
        let server = endpoint.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                server.connections.fetch_add(1, Ordering::SeqCst);
                let server = server.clone();
                tokio::spawn(async move { server.talk(stream).await });
            }
        });
        endpoint
    }

    pub async fn says(status: &str) -> Self {
        Self::new(Reply::Says(status.to_owned())).await
    }

    pub fn now_says(&self, status: &str) {
        self.now(Reply::Says(status.to_owned()));
    }

    pub fn now(&self, reply: Reply) {
        *self.reply.lock().unwrap() = reply;
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    pub fn last(&self) -> Seen {
        self.seen.lock().unwrap().last().cloned().unwrap()
    }

    async fn talk(&self, mut stream: TcpStream) {
        let reply = self.reply.lock().unwrap().clone();
        if matches!(reply, Reply::Reset) {
            // Closed with something unread: the other side is told that the connection was reset.
            _ = stream.read_u8().await;
            return;
        }
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break at;
            }
            if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                return;
            }
        };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let mut lines = head.lines();
        let line = lines.next().unwrap().to_owned();
        let pairs = lines.map(|line| line.split_once(": ").unwrap());
        let headers: HashMap<String, String> = pairs.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
        let length: usize = headers["content-length"].parse().unwrap();
        while bytes.len() < end + 4 + length {
            assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0);
        }
        let seen = Seen { line, headers, body: bytes[end + 4..].to_vec() };
        let id = seen.id().to_owned();
        self.seen.lock().unwrap().push(seen);
        let answer =
            |status: &str, body: &str| format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
        match reply {
            Reply::Says(status) => _ = stream.write_all(answer(&status, "ok").as_bytes()).await,
            Reply::Answers(status, body) => _ = stream.write_all(answer(&status, &body).as_bytes()).await,
            Reply::Slowly(status) => {
                {
                    let mut going = self.going.lock().unwrap();
                    assert!(!going.contains(&id), "{id} twice at once");
                    going.push(id.clone());
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
                self.going.lock().unwrap().retain(|other| *other != id);
                _ = stream.write_all(answer(status, "ok").as_bytes()).await;
            }
            Reply::Hang => std::future::pending().await,
            Reply::Drip => {
                _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n").await;
                while stream.write_all(b".").await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
            Reply::Reset => {}
        }
    }
}

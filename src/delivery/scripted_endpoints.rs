//! Test fixtures for delivery: scripted local HTTP endpoints, and the function that makes a service for tests.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::domain::webhooks::SigningSecret;
pub(crate) use crate::service::test_service::service;

/// The initial time of the fake clock, in Unix milliseconds.
pub const START: i64 = 1_700_000_000_000;

/// The time-out of requests to endpoints in most tests of delivery.
pub const SHORT: Duration = Duration::from_millis(400);

/// A request that an endpoint received.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    pub line: String,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl ReceivedRequest {
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

impl ReceivedRequest {
    /// Reads the next request of a connection. Returns `None` at the end of the connection.
    async fn read(stream: &mut TcpStream) -> Option<Self> {
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break at;
            }
            if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                return None;
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
        Some(Self { line, headers, body: bytes[end + 4..].to_vec() })
    }
}

#[derive(Clone, Debug)]
pub enum ScriptedReply {
    /// A complete response with this status line and headers.
    Says(String),
    /// A complete response with this status line and headers, and this body.
    Answers(String, String),
    /// A response with this status line and headers after a delay, during which no other attempt of the same event may arrive.
    Slowly(&'static str),
    Hang,
    Reset,
    /// Begins a response with this body and never ends it.
    Unended(&'static str),
}

/// A local HTTP server with scripted responses.
#[derive(Clone)]
pub struct TestServer {
    pub port: u16,
    pub connections: Arc<AtomicUsize>,
    going: Arc<Mutex<Vec<String>>>,
    decide: Arc<dyn Fn(ReceivedRequest) -> ScriptedReply + Send + Sync>,
}

impl TestServer {
    pub async fn new(decide: impl Fn(ReceivedRequest) -> ScriptedReply + Send + Sync + 'static) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), decide)
    }

    pub fn on(listener: TcpListener, decide: impl Fn(ReceivedRequest) -> ScriptedReply + Send + Sync + 'static) -> Self {
        let port = listener.local_addr().unwrap().port();
        let server = Self { port, connections: Arc::default(), going: Arc::default(), decide: Arc::new(decide) };
        let accepting = server.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                accepting.connections.fetch_add(1, Ordering::SeqCst);
                let server = accepting.clone();
                tokio::spawn(async move { server.talk(stream).await });
            }
        });
        server
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hooks?a=b", self.port)
    }

    async fn talk(&self, mut stream: TcpStream) {
        while let Some(seen) = ReceivedRequest::read(&mut stream).await {
            let id = seen.id().to_owned();
            match (self.decide)(seen) {
                ScriptedReply::Says(status) => say(&mut stream, &status).await,
                ScriptedReply::Answers(status, body) => answer(&mut stream, &status, &body).await,
                ScriptedReply::Slowly(status) => {
                    {
                        let mut going = self.going.lock().unwrap();
                        assert!(!going.contains(&id), "{id} twice at once");
                        going.push(id.clone());
                    }
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    self.going.lock().unwrap().retain(|other| *other != id);
                    say(&mut stream, status).await;
                }
                ScriptedReply::Hang => _ = stream.read_u8().await,
                ScriptedReply::Unended(body) => {
                    _ = stream.write_all(format!("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{body}").as_bytes()).await;
                    while stream.write_all(b" ").await.is_ok() {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                }
                ScriptedReply::Reset => return stream.set_zero_linger().unwrap(),
            }
        }
    }
}

/// Sends a response with this status line and headers, and keeps the connection open.
async fn say(stream: &mut TcpStream, status: &str) {
    // A response with the status 204 has no body.
    let content = if status.starts_with("204") { "" } else { "ok" };
    answer(stream, status, content).await;
}

async fn answer(stream: &mut TcpStream, status: &str, body: &str) {
    _ = stream.write_all(format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes()).await;
}

/// A server that records its requests, and gives all of them the same response, which a test can change.
#[derive(Clone)]
pub struct TestEndpoint {
    pub url: String,
    pub connections: Arc<AtomicUsize>,
    seen: Arc<Mutex<Vec<ReceivedRequest>>>,
    reply: Arc<Mutex<ScriptedReply>>,
}

impl TestEndpoint {
    pub async fn new(reply: ScriptedReply) -> Self {
        let (seen, reply): (Arc<Mutex<Vec<ReceivedRequest>>>, _) = (Arc::default(), Arc::new(Mutex::new(reply)));
        let (keep, said) = (seen.clone(), reply.clone());
        let server = TestServer::new(move |request| {
            keep.lock().unwrap().push(request);
            said.lock().unwrap().clone()
        })
        .await;
        Self { url: server.url(), connections: server.connections, seen, reply }
    }

    pub async fn says(status: &str) -> Self {
        Self::new(ScriptedReply::Says(status.to_owned())).await
    }

    pub fn now_says(&self, status: &str) {
        self.now(ScriptedReply::Says(status.to_owned()));
    }

    pub fn now(&self, reply: ScriptedReply) {
        *self.reply.lock().unwrap() = reply;
    }

    pub fn seen(&self) -> Vec<ReceivedRequest> {
        self.seen.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    pub fn last(&self) -> ReceivedRequest {
        self.seen.lock().unwrap().last().cloned().unwrap()
    }
}

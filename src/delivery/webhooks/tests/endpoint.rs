//! Local endpoints that do as they are told.

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

/// A request that an endpoint was sent.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) line: String,
    pub(super) headers: HashMap<String, String>,
    pub(super) body: Vec<u8>,
}

impl Seen {
    pub(super) fn id(&self) -> &str {
        &self.headers["webhook-id"]
    }

    pub(super) fn seconds(&self) -> i64 {
        self.headers["webhook-timestamp"].parse().unwrap()
    }

    pub(super) fn signatures(&self) -> Vec<&str> {
        self.headers["webhook-signature"].split(' ').collect()
    }

    pub(super) fn signed_by(&self, secret: &SigningSecret) -> String {
        secret.sign(self.id(), self.seconds(), &self.body)
    }
}

#[derive(Clone, Debug)]
pub(super) enum Reply {
    /// A status line and headers.
    Says(String),
    /// The same after a while, in which nothing else may come for the event.
    Slowly(&'static str),
    Hang,
    Reset,
    /// Begins an answer and never ends it.
    Drip,
}

/// A local HTTP server.
#[derive(Clone)]
pub(super) struct Endpoint {
    pub(super) url: String,
    pub(super) name: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    reply: Arc<Mutex<Reply>>,
    pub(super) connections: Arc<AtomicUsize>,
    going: Arc<Mutex<Vec<String>>>,
}

impl Endpoint {
    pub(super) async fn new(reply: Reply) -> Self {
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

    pub(super) async fn says(status: &str) -> Self {
        Self::new(Reply::Says(status.to_owned())).await
    }

    pub(super) fn now_says(&self, status: &str) {
        *self.reply.lock().unwrap() = Reply::Says(status.to_owned());
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(super) fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    pub(super) fn last(&self) -> Seen {
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
        let answer = |status: &str| format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
        match reply {
            Reply::Says(status) => _ = stream.write_all(answer(&status).as_bytes()).await,
            Reply::Slowly(status) => {
                {
                    let mut going = self.going.lock().unwrap();
                    assert!(!going.contains(&id), "{id} twice at once");
                    going.push(id.clone());
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
                self.going.lock().unwrap().retain(|other| *other != id);
                _ = stream.write_all(answer(status).as_bytes()).await;
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

//! A webhook endpoint on this machine, which responds with a status that the test chooses.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU16, AtomicUsize, Ordering},
    },
    thread,
};

use crate::contract::event_contract;

/// A webhook endpoint, which accepts deliveries until the process ends.
#[derive(Clone)]
pub struct Endpoint {
    pub url: String,
    status: Arc<AtomicU16>,
    taken: Arc<AtomicUsize>,
    /// The errors of deliveries that do not match the published OpenAPI document of the events.
    faults: Arc<Mutex<Vec<String>>>,
}

impl Endpoint {
    pub fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/hooks", listener.local_addr().expect("an address"));
        let endpoint = Self { url, status: Arc::new(AtomicU16::new(200)), taken: Arc::default(), faults: Arc::default() };
        let server = endpoint.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = server.clone();
                thread::spawn(move || server.take(stream));
            }
        });
        endpoint
    }

    /// Sets the status of all further responses.
    pub fn answers(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    /// Asserts that all deliveries matched the OpenAPI document of the events. Returns the number of deliveries so far.
    pub fn taken(&self) -> usize {
        assert_eq!(*self.faults.lock().expect("not poisoned"), [""; 0]);
        self.taken.load(Ordering::SeqCst)
    }

    fn take(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut headers = HashMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            match line.trim_end().split_once(": ") {
                Some((name, value)) => _ = headers.insert(name.to_ascii_lowercase(), value.to_owned()),
                None if line.trim_end().is_empty() => break,
                _ => {}
            }
        }
        let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or_default();
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        if let Err(fault) = event_contract::check_delivery(&headers, &String::from_utf8_lossy(&body)) {
            self.faults.lock().expect("not poisoned").push(fault);
        }
        self.taken.fetch_add(1, Ordering::SeqCst);
        let (status, answer) = (self.status.load(Ordering::SeqCst), "<b>noted</b>");
        write!(stream, "HTTP/1.1 {status} Told\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}", answer.len())
    }
}

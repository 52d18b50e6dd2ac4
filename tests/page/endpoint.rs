//! A webhook's endpoint on this machine, which answers as it is told to.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU16, AtomicUsize, Ordering},
    },
    thread,
};

/// Takes deliveries as long as the process lives.
#[derive(Clone)]
pub struct Endpoint {
    pub url: String,
    status: Arc<AtomicU16>,
    taken: Arc<AtomicUsize>,
}

impl Endpoint {
    pub fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/hooks", listener.local_addr().expect("an address"));
        let endpoint = Self { url, status: Arc::new(AtomicU16::new(200)), taken: Arc::default() };
        let server = endpoint.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = server.clone();
                thread::spawn(move || server.take(stream));
            }
        });
        endpoint
    }

    /// Answers with this status from now on.
    pub fn answers(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    /// How many deliveries came.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::SeqCst)
    }

    fn take(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            match line.trim_end().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.parse().unwrap_or_default(),
                None if line.trim_end().is_empty() => break,
                _ => {}
            }
        }
        reader.read_exact(&mut vec![0; length])?;
        self.taken.fetch_add(1, Ordering::SeqCst);
        write!(stream, "HTTP/1.1 {} Told\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", self.status.load(Ordering::SeqCst))
    }
}

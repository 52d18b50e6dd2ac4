//! Connection time-outs: for reading a request, for writing a response, and for idle connections.
//!
//! poem has no time-out for the head of a request, and its time-out for idle connections does not close a connection whose client has sent
//! a part of a head. So [`TimedStream`] itself limits three durations: the time from the first byte of a request to the first byte of its
//! response, the time from the last write to the next request, and the time in which the operating system accepts no bytes of a response.
//!
//! A connection with a slow head is closed here. A request with a slow body first reaches the shorter limit of [`super::middleware`], which
//! sends an error response. If a client closes its connection before the response, this module ends the request, too. Otherwise the request
//! would go on waiting for its permit to run expensive statements (`fair_share`), and delay later requests.
//!
//! poem's own limit for idle connections costs more: every read and write wakes a second task of the connection, and this task resets a
//! timer. Here a connection has one timer, which is reset in only two cases: it fired before the deadline, or it would fire after the
//! deadline.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use poem::{
    http::uri::Scheme,
    listener::{Acceptor, TcpAcceptor},
    web::{LocalAddr, RemoteAddr},
};
use prometheus_client::metrics::gauge::Gauge;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpSocket, lookup_host},
    time::{Instant, Sleep, sleep, sleep_until},
};

/// The longest time from the first byte of a request to the first byte of its response.
const LIMIT: Duration = Duration::from_secs(40);
/// The longest time that a connection may stay open without a request.
const IDLE: Duration = Duration::from_secs(75);
/// Write time-out: the longest time in which the operating system accepts no bytes of a response. The system accepts more once about a
/// third of its buffer ([`SEND_BUFFER`]) is free, so a client that reads some kilobytes a second gets the whole response.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// The size in bytes of the operating system's send buffer, which holds the bytes that a client has not read yet; Linux doubles this value.
/// By default the buffer grows to megabytes. A slow client would then need longer than the write time-out to make room in the buffer, and
/// could not be distinguished from a client that reads nothing.
const SEND_BUFFER: u32 = 128 * 1024;
/// The largest number of connections that wait to be accepted.
const BACKLOG: u32 = 1024;

/// Listens on `address`, a host and port. If the host has several IP addresses, the server listens on the first address that can be bound.
/// `open` counts the open connections.
pub async fn listen(address: &str, open: Gauge) -> io::Result<Timed<TcpAcceptor>> {
    let mut failed = io::Error::new(io::ErrorKind::InvalidInput, "the name has no address");
    for address in lookup_host(address).await? {
        match listen_at(address) {
            Ok(listener) => return Ok(Timed { acceptor: TcpAcceptor::from_tokio(listener)?, open }),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn listen_at(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    // Accepted connections inherit the size of the send buffer from the listening socket.
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The pause after a failure to accept a connection.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(100);

/// An acceptor whose connections have time-outs, and are counted while they are open.
#[derive(Debug)]
pub struct Timed<A> {
    acceptor: A,
    open: Gauge,
}

/// A guard that counts an open connection until the guard is dropped.
#[derive(Debug)]
struct ConnectionGuard(Gauge);

impl ConnectionGuard {
    fn one_more(open: &Gauge) -> Self {
        open.inc();
        Self(open.clone())
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl<A: Acceptor> Acceptor for Timed<A> {
    type Io = TimedStream<A::Io>;

    fn local_addr(&self) -> Vec<LocalAddr> {
        self.acceptor.local_addr()
    }

    async fn accept(&mut self) -> io::Result<(Self::Io, LocalAddr, RemoteAddr, Scheme)> {
        match self.acceptor.accept().await {
            Ok((stream, local, remote, scheme)) => Ok((TimedStream::new(stream, &self.open), local, remote, scheme)),
            Err(error) => {
                // If the client has already closed the connection, no pause is needed. Other errors persist, such as a lack of file
                // descriptors. The caller of this function retries immediately, so without a pause it would keep the processor busy.
                if !matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) {
                    tracing::error!(%error, "a connection cannot be accepted");
                    sleep(ACCEPT_RETRY_PAUSE).await;
                }
                Err(error)
            }
        }
    }
}

/// A connection with time-outs, which is counted while it is open.
#[derive(Debug)]
pub struct TimedStream<S> {
    stream: S,
    awaits: IoPhase,
    due: Instant,
    /// The timer of the time limit. It fires at `due` or earlier. If it fires earlier, it is reset to `due`.
    alarm: Pin<Box<Sleep>>,
    _counted: ConnectionGuard,
}

/// The event that a connection waits for. The event determines the time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IoPhase {
    /// The connection waits for the first byte of a request.
    Request,
    /// The connection waits for the rest of a request from the client, or for the response, which this server is producing.
    Rest,
    /// The connection waits until the operating system accepts more bytes of a response.
    Taking,
}

impl<S> TimedStream<S> {
    fn new(stream: S, open: &Gauge) -> Self {
        let due = Instant::now() + IDLE;
        Self { stream, awaits: IoPhase::Request, due, alarm: Box::pin(sleep_until(due)), _counted: ConnectionGuard::one_more(open) }
    }

    fn wait(&mut self, awaits: IoPhase) {
        self.awaits = awaits;
        let limit = match awaits {
            IoPhase::Request => IDLE,
            IoPhase::Rest => LIMIT,
            IoPhase::Taking => WRITE_TIMEOUT,
        };
        self.due = Instant::now() + limit;
        if self.due < self.alarm.deadline() {
            self.alarm.as_mut().reset(self.due);
        }
    }

    /// Returns whether the time limit of the current phase has passed. If not, the runtime wakes the task when the limit passes.
    fn is_overdue(&mut self, context: &mut Context<'_>) -> bool {
        while self.alarm.as_mut().poll(context).is_ready() {
            if self.due <= Instant::now() {
                return true;
            }
            self.alarm.as_mut().reset(self.due);
        }
        false
    }

    fn written(&mut self, result: Poll<io::Result<usize>>, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match &result {
            Poll::Ready(Ok(_)) => self.wait(IoPhase::Request),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => {
                if self.awaits != IoPhase::Taking {
                    self.wait(IoPhase::Taking);
                }
                if self.is_overdue(context) {
                    return Poll::Ready(Err(self.too_slow()));
                }
            }
        }
        result
    }

    fn too_slow(&self) -> io::Error {
        let what = match self.awaits {
            IoPhase::Request => "no request came",
            IoPhase::Rest => "the request took too long to arrive",
            IoPhase::Taking => "the client does not read the answer",
        };
        io::Error::new(io::ErrorKind::TimedOut, what)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        let late = match &result {
            Poll::Pending => self.is_overdue(context),
            // The time limit of a request also applies to a client that keeps sending bytes.
            Poll::Ready(_) => self.awaits == IoPhase::Rest && self.due <= Instant::now(),
        };
        if late {
            return Poll::Ready(Err(self.too_slow()));
        }
        // If no bytes came, the client has closed the connection. hyper then gives the connection up, but poem keeps polling it: the
        // operation would run to its end although the client no longer reads the response. The error makes poem stop polling.
        if self.awaits == IoPhase::Rest
            && matches!(result, Poll::Ready(Ok(())))
            && buffer.filled().len() == before
            && buffer.remaining() > 0
        {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the caller hung up")));
        }
        if self.awaits == IoPhase::Request && buffer.filled().len() > before {
            self.wait(IoPhase::Rest);
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(result, context)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.written(result, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::{future::pending, sync::Arc};

    use poem::{
        Addr, Server,
        endpoint::{make, make_sync},
    };
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
        sync::Notify,
        time::{advance, timeout},
    };

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn connection() -> (DuplexStream, TimedStream<DuplexStream>) {
        let (client, server) = duplex(64);
        (client, TimedStream::new(server, &Gauge::default()))
    }

    #[tokio::test]
    async fn a_full_connection_accepts_bytes_again_once_a_slow_client_reads() {
        let mut acceptor = listen("127.0.0.1:0", Gauge::default()).await.unwrap();
        let address = acceptor.local_addr()[0].as_socket_addr().copied().unwrap();
        let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
        let (mut server, ..) = acceptor.accept().await.unwrap();
        let mut written = 0;
        // Writes until the buffers of both sides are full.
        while let Ok(more) = timeout(Duration::from_millis(200), server.write(&[b'x'; 1 << 14])).await {
            written += more.unwrap();
        }
        // After the client has read a part of these bytes, the operating system accepts more.
        let mut taken = vec![0; SEND_BUFFER as usize];
        client.read_exact(&mut taken).await.unwrap();
        let more = timeout(SECOND, server.write(b"x")).await;
        assert!(more.is_ok(), "{} bytes of {written} were taken, and no room was made", taken.len());
    }

    async fn read(server: &mut TimedStream<DuplexStream>) -> io::Result<usize> {
        server.read(&mut [0; 64]).await
    }

    #[tokio::test(start_paused = true)]
    async fn an_incomplete_request_times_out_and_a_response_restarts_the_limit() {
        let (mut client, mut server) = connection();
        client.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        assert!(read(&mut server).await.unwrap() > 0);
        advance(LIMIT - SECOND).await;
        server.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        advance(LIMIT + SECOND).await;
        client.write_all(b"GET / HT").await.unwrap();
        assert!(read(&mut server).await.unwrap() > 0);
        let begun = Instant::now();
        assert_eq!(read(&mut server).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        // A timer of tokio rounds up to its next tick, so the time is not exact.
        assert!((LIMIT..LIMIT + SECOND).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_whose_headers_never_end_times_out() {
        let (mut client, mut server) = connection();
        for _ in 0..LIMIT.as_secs() {
            client.write_all(b"x-more: header\r\n").await.unwrap();
            assert!(read(&mut server).await.unwrap() > 0);
            advance(SECOND).await;
        }
        client.write_all(b"x-more: header\r\n").await.unwrap();
        assert_eq!(read(&mut server).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_ends_and_a_busy_one_stays() {
        let (mut client, mut server) = connection();
        for _ in 0..5 {
            advance(IDLE - SECOND).await;
            client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
            assert!(read(&mut server).await.unwrap() > 0);
            server.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            assert!(client.read(&mut [0; 64]).await.unwrap() > 0);
        }
        let begun = Instant::now();
        assert_eq!(read(&mut server).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!((IDLE..IDLE + SECOND).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn an_unread_response_times_out_and_a_slow_reader_receives_its_response() {
        let (mut client, server) = connection();
        let taking = tokio::spawn(async move {
            for _ in 0..5 {
                tokio::time::sleep(WRITE_TIMEOUT - SECOND).await;
                // Bytes that the client sends while the server writes do not extend or shorten the write time-out.
                client.write_all(b"GET / HT").await.unwrap();
                client.read_exact(&mut [0; 64]).await.unwrap();
            }
            client
        });
        let (mut reader, mut writer) = tokio::io::split(server);
        // Reads while the server writes, as hyper does to notice that the client has closed the connection.
        let reading = tokio::spawn(async move { while reader.read(&mut [0; 64]).await.is_ok() {} });
        writer.write_all(&[b'x'; 64 * 6]).await.unwrap();
        let client = taking.await.unwrap();
        let begun = Instant::now();
        assert_eq!(writer.write_all(b"x").await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!((WRITE_TIMEOUT - SECOND..WRITE_TIMEOUT + SECOND).contains(&begun.elapsed()), "{:?}", begun.elapsed());
        reading.abort();
        drop(client);
    }

    /// An acceptor that accepts one connection.
    struct One(Option<DuplexStream>);

    impl Acceptor for One {
        type Io = DuplexStream;

        fn local_addr(&self) -> Vec<LocalAddr> {
            vec![]
        }

        async fn accept(&mut self) -> io::Result<(DuplexStream, LocalAddr, RemoteAddr, Scheme)> {
            let Some(stream) = self.0.take() else { return pending().await };
            let nowhere = Addr::custom("memory", "");
            Ok((stream, LocalAddr(nowhere.clone()), RemoteAddr(nowhere), Scheme::HTTP))
        }
    }

    #[tokio::test]
    async fn a_request_is_cancelled_when_its_caller_closes_the_connection() {
        let (arrived, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (arrives, ends) = (arrived.clone(), ended.clone());
        let endpoint = make(move |_| {
            let (arrives, end) = (arrives.clone(), scopeguard::guard(ends.clone(), |ends| ends.notify_one()));
            async move {
                let _end = end;
                arrives.notify_one();
                pending::<&str>().await
            }
        });
        let (mut client, server) = duplex(1 << 16);
        let serving = tokio::spawn(Server::new_with_acceptor(Timed { acceptor: One(Some(server)), open: Gauge::default() }).run(endpoint));
        client.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        arrived.notified().await;
        assert!(timeout(Duration::from_millis(50), ended.notified()).await.is_err());
        drop(client);
        timeout(SECOND, ended.notified()).await.expect("it ends");
        serving.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn the_server_closes_connections_at_the_idle_or_the_request_limit() {
        let request = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
        // The start of a second request is not recognised as a request if it arrives in the same read as the first one. So the limit of
        // idle connections applies to the second request.
        let two = format!("{request}GET");
        for (sent, answers, closed) in [("", 0, IDLE), ("GET / HT", 0, LIMIT), (request, 1, IDLE), (&two, 1, IDLE)] {
            let (mut client, server) = duplex(1 << 16);
            let serving =
                Server::new_with_acceptor(Timed { acceptor: One(Some(server)), open: Gauge::default() }).run(make_sync(|_| "here"));
            let serving = tokio::spawn(serving);
            client.write_all(sent.as_bytes()).await.unwrap();
            let (begun, mut answered) = (Instant::now(), String::new());
            timeout(2 * IDLE, client.read_to_string(&mut answered)).await.expect("it is closed").unwrap();
            assert_eq!(answered.matches("HTTP/1.1 200 OK").count(), answers, "{sent}");
            assert!((closed..closed + SECOND).contains(&begun.elapsed()), "{sent}: {:?}", begun.elapsed());
            serving.abort();
        }
    }
}

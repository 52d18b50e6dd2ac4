//! Connections that send a request too slowly.
//!
//! poem sets no limit on how long the head of a request may take, and does not stop a half-read one when a connection is
//! idle. So the stream itself keeps the time: from the first byte that it reads until the first byte of an answer. A body
//! that is slow is answered in time by [`super::edge`]; a head that is slow ends here.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use poem::{
    http::uri::Scheme,
    listener::Acceptor,
    web::{LocalAddr, RemoteAddr},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// The longest from the first byte of a request to the first byte of its answer.
const LIMIT: Duration = Duration::from_secs(40);

/// An acceptor whose connections keep the time.
#[derive(Debug)]
pub struct Timed<A>(pub A);

impl<A: Acceptor> Acceptor for Timed<A> {
    type Io = TimedStream<A::Io>;

    fn local_addr(&self) -> Vec<LocalAddr> {
        self.0.local_addr()
    }

    async fn accept(&mut self) -> io::Result<(Self::Io, LocalAddr, RemoteAddr, Scheme)> {
        let (stream, local, remote, scheme) = self.0.accept().await?;
        Ok((TimedStream { stream, due: None }, local, remote, scheme))
    }
}

/// A connection.
#[derive(Debug)]
pub struct TimedStream<S> {
    stream: S,
    /// Set while a request is being read or answered.
    due: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Some(due) = &mut this.due
            && due.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the request took too long to arrive")));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
        if this.due.is_none() && buffer.filled().len() > before {
            this.due = Some(Box::pin(sleep(LIMIT)));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.due = None;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.due = None;
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
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
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn half_a_request_ends_the_connection_and_an_answer_starts_anew() {
        let (mut client, server) = duplex(64);
        let mut server = TimedStream { stream: server, due: None };
        let mut buffer = [0; 64];
        client.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        assert!(server.read(&mut buffer).await.unwrap() > 0);
        server.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        tokio::time::advance(LIMIT * 2).await;
        client.write_all(b"GET / HT").await.unwrap();
        assert!(server.read(&mut buffer).await.unwrap() > 0);
        assert_eq!(server.read(&mut buffer).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}

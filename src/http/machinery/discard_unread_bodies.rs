//! Discards unread request bodies: reads the rest of a request body that the operation has not read to its end when the response is ready.
//!
//! hyper closes a connection if its request body is dropped before the end. The response does not announce this close, so a proxy that
//! reuses the connection loses its next request. Therefore this module reads and discards the remaining body after the response, within
//! limits of size and time, and the connection stays usable. If the connection may have to be closed, the response announces it in the
//! header `connection`. In this case, too, the remaining body is read, so that the client can read the response before the connection ends.
//!
//! Called by `middleware`. Guarantees: the response does not wait for the remaining body, and a body that was read to its end causes no
//! further work.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{Stream, StreamExt};
use poem::{
    Body, Request,
    http::{HeaderMap, header},
};

/// The largest number of remaining bytes that are read: four times the largest accepted body.
const LIMIT: usize = 4 * super::body::LIMIT;
/// The longest time in which the remaining body is read.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(5);

/// The request body that the operation reads. When it is dropped before its stream was read to the end, the stream is moved into `slot`,
/// from which [`UnreadBody`] takes it.
struct BodyWatch<S: Unpin> {
    stream: Option<S>,
    slot: Slot<S>,
}

type Slot<S> = Arc<Mutex<Option<S>>>;

impl<S: Stream + Unpin> Stream for BodyWatch<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let Some(stream) = &mut self.stream else { return Poll::Ready(None) };
        let next = stream.poll_next_unpin(context);
        if matches!(next, Poll::Ready(None)) {
            self.stream = None;
        }
        next
    }
}

impl<S: Unpin> Drop for BodyWatch<S> {
    fn drop(&mut self) {
        // The mutex always holds a stream or `None`, so its content is valid even if the mutex is poisoned.
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = self.stream.take();
    }
}

/// A handle that takes the unread part of a request's body once the operation has dropped the body.
pub struct UnreadBody<S> {
    slot: Slot<S>,
    closes: bool,
}

/// The part of a request body that is unread when the response is ready.
pub struct RemainingBody<S> {
    stream: S,
    /// Whether the connection may be closed after the response, which then has to announce the close (`connection: close`).
    pub closes: bool,
}

/// Replaces the body of a request by a body whose unread part can be read later. Returns `None` if the request has no body.
pub fn watch(request: &mut Request) -> Option<UnreadBody<impl Stream<Item = io::Result<impl AsRef<[u8]> + use<>>> + Send + Unpin + use<>>> {
    let body = request.take_body();
    if body.is_empty() {
        return None;
    }
    let closes = ends_the_connection(request.headers());
    let slot = Slot::default();
    request.set_body(Body::from_bytes_stream(BodyWatch { stream: Some(Box::pin(body.into_bytes_stream())), slot: slot.clone() }));
    Some(UnreadBody { slot, closes })
}

/// Returns whether the connection may be closed if the response is sent before the end of the body. There are two such cases: the body
/// exceeds the limit, or the client may never send the body (`Expect: 100-continue`).
fn ends_the_connection(headers: &HeaderMap) -> bool {
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()).and_then(|text| text.parse::<usize>().ok());
    declared.is_some_and(|length| length > LIMIT) || headers.contains_key(header::EXPECT)
}

impl<S> UnreadBody<S> {
    /// Returns the unread part of the body; `None` if the whole body was read. To be called after the operation has dropped the body.
    pub fn rest(self) -> Option<RemainingBody<S>> {
        let stream = self.slot.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(RemainingBody { stream, closes: self.closes })
    }
}

impl<S: Stream<Item = io::Result<B>> + Unpin, B: AsRef<[u8]>> RemainingBody<S> {
    /// Reads and discards the body until its end, an error, or a limit. If bytes are still unread then, dropping the stream closes the
    /// connection.
    pub async fn drain(mut self) {
        let reading = async {
            let mut left = LIMIT;
            while let Some(Ok(chunk)) = self.stream.next().await {
                match left.checked_sub(chunk.as_ref().len()) {
                    Some(less) => left = less,
                    None => return,
                }
            }
        };
        if tokio::time::timeout(DISCARD_TIMEOUT, reading).await.is_err() {
            tracing::debug!("the rest of a request body did not come in time; its connection is closed");
        }
    }
}

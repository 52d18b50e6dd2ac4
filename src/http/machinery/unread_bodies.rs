//! Early answers: what happens to the part of a request body that was not read when the answer was ready.
//!
//! hyper closes a connection whose request body is dropped before its end, and the answer does not announce the close: the next request on
//! a connection that a proxy reuses is lost. So the rest of the body is read and discarded after the answer, within bounds of size and
//! time, and the connection stays usable. If the connection may have to be closed, the answer says `connection: close`. Then, too, the rest
//! is read, so that the client can read the answer before the connection ends.
//!
//! Called by `middleware`. Guarantees: the answer does not wait for the rest, and a body that was read to its end costs nothing more.

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

/// The most bytes of the rest that are read: four times the largest accepted body.
const LIMIT: usize = 4 * super::body::LIMIT;
/// The longest time to wait for the rest.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request body as the operation reads it. When it is dropped, its unread stream goes into the slot.
struct Watched<S: Unpin> {
    stream: Option<S>,
    slot: Slot<S>,
}

type Slot<S> = Arc<Mutex<Option<S>>>;

impl<S: Stream + Unpin> Stream for Watched<S> {
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

impl<S: Unpin> Drop for Watched<S> {
    fn drop(&mut self) {
        // A poisoned slot holds a stream or `None`, so it is still valid.
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = self.stream.take();
    }
}

/// The body of a request under way.
pub struct Unread<S> {
    slot: Slot<S>,
    closes: bool,
}

/// The unread rest of a body, after its answer.
pub struct Rest<S> {
    stream: S,
    /// Whether the connection ends with the answer, which then has to announce it.
    pub closes: bool,
}

/// Replaces the body of a request by one whose unread rest can be read later. `None`: the request has no body.
pub fn watch(request: &mut Request) -> Option<Unread<impl Stream<Item = io::Result<impl AsRef<[u8]> + use<>>> + Send + Unpin + use<>>> {
    let body = request.take_body();
    if body.is_empty() {
        return None;
    }
    let closes = ends_the_connection(request.headers());
    let slot = Slot::default();
    request.set_body(Body::from_bytes_stream(Watched { stream: Some(Box::pin(body.into_bytes_stream())), slot: slot.clone() }));
    Some(Unread { slot, closes })
}

/// Whether an early answer ends the connection: the body exceeds the limit, or the client may not send it (`Expect`).
fn ends_the_connection(headers: &HeaderMap) -> bool {
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()).and_then(|text| text.parse::<usize>().ok());
    declared.is_some_and(|length| length > LIMIT) || headers.contains_key(header::EXPECT)
}

impl<S> Unread<S> {
    /// The rest, after the operation has dropped the body. `None`: the whole body was read.
    pub fn rest(self) -> Option<Rest<S>> {
        let stream = self.slot.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(Rest { stream, closes: self.closes })
    }
}

impl<S: Stream<Item = io::Result<B>> + Unpin, B: AsRef<[u8]>> Rest<S> {
    /// Reads until the end of the body, an error, or a limit. Dropping an unread remainder then ends the connection.
    pub async fn read_away(mut self) {
        let reading = async {
            let mut left = LIMIT;
            while let Some(Ok(chunk)) = self.stream.next().await {
                match left.checked_sub(chunk.as_ref().len()) {
                    Some(less) => left = less,
                    None => return,
                }
            }
        };
        if tokio::time::timeout(PATIENCE, reading).await.is_err() {
            tracing::debug!("the rest of a request body did not come in time; its connection is closed");
        }
    }
}

//! Backpressure: limits on the bytes of responses that are complete but not yet read by their clients (unsent responses).
//!
//! A response stays in the memory of this process until the operating system's buffer of the connection has accepted all of it. So the
//! responses to a client that reads nothing stay in memory. Their bytes count against a limit of the caller (an API key, a user of the
//! settings API, or a bridge, which connects an account to its channel), and against one limit of all callers together.
//!
//! After a limit is reached, a request is refused before its work is done. The response to a read is also refused if its own bytes would
//! exceed a limit. The response to a write is sent in any case, since the write has happened. A caller without unsent responses is never
//! refused.
//!
//! The extractors that authenticate callers call [`UnsentResponses::admit`] for each request, and `middleware` calls
//! [`UnsentResponses::count`] for each long response. hyper (the HTTP library) takes a response in slices. The bytes count until hyper has
//! released the last slice, or the connection ends. hyper copies up to about 400 KB of slices into its own buffer for the next write of a
//! connection; these copies do not count.

use std::{
    collections::HashMap,
    fmt, io, iter,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use futures_util::stream;
use poem::{Body, http::StatusCode};

use super::{context::Recipient, error_responses::ApiError};

const MIB: usize = 1024 * 1024;

/// The limit on the unsent bytes of one caller (the recipient of the responses).
const EACH: usize = 32 * MIB;
/// The limit on the unsent bytes of all callers together.
const ALL: usize = 256 * MIB;

/// Responses up to this length are not counted: the operating system's buffer of a connection accepts them whole. Longer responses are
/// passed to hyper in slices of this length.
pub const SLICE: usize = 64 * 1024;

/// The value of the header `Retry-After` in a refusal, in seconds.
const PAUSE: u32 = 1;

/// Counts the bytes of unsent responses in this process.
#[derive(Clone, Debug)]
pub struct UnsentResponses(Arc<UnsentState>);

#[derive(Debug)]
struct UnsentState {
    each: usize,
    all: usize,
    held: Mutex<HashMap<Recipient, usize>>,
    /// The sum of all numbers in `held`. It changes only while `held` is locked.
    total: AtomicUsize,
}

/// The error of a refused request: which limit of unsent bytes was reached, and the value of this limit.
#[derive(Debug, PartialEq, Eq)]
pub struct UnsentBytesExceeded {
    limit: ReachedLimit,
    bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReachedLimit {
    Key,
    User,
    Bridge,
    All,
}

impl fmt::Display for UnsentBytesExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = match self.limit {
            ReachedLimit::Key => "`x-api-key` has",
            ReachedLimit::User => "the user of this session or token has",
            ReachedLimit::Bridge => "this bridge has",
            ReachedLimit::All => "all callers together have",
        };
        let mib = self.bytes / MIB;
        write!(
            f,
            "{whose} reached the limit of {mib} MiB of answers that were sent and not yet read; read them or close their \
             connections, and wait for `Retry-After` seconds"
        )
    }
}

impl From<UnsentBytesExceeded> for ApiError {
    fn from(much: UnsentBytesExceeded) -> Self {
        Self { retry_after: Some(PAUSE), ..Self::new(StatusCode::TOO_MANY_REQUESTS, much.to_string()) }
    }
}

impl Default for UnsentResponses {
    fn default() -> Self {
        Self::new(EACH, ALL)
    }
}

impl UnsentResponses {
    fn new(each: usize, all: usize) -> Self {
        Self(Arc::new(UnsentState { each, all, held: Mutex::default(), total: AtomicUsize::new(0) }))
    }

    /// Refuses a request if the unsent bytes of its caller (the recipient of the response) or of all callers have reached their limit. A
    /// caller without unsent responses is admitted.
    pub fn admit(&self, recipient: &Recipient) -> Result<(), UnsentBytesExceeded> {
        if self.0.total.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        self.0.room(self.0.held().get(recipient).copied().unwrap_or(0), 1, recipient)
    }

    /// Counts the bytes of a response as unsent. Returns a buffer with the same bytes, which count until the last slice of the buffer is
    /// dropped. If the bytes exceed a limit, the response is refused, unless `sure` is true.
    pub fn count(&self, recipient: &Recipient, bytes: Bytes, sure: bool) -> Result<Bytes, UnsentBytesExceeded> {
        let mut held = self.0.held();
        let before = held.get(recipient).copied().unwrap_or(0);
        if !sure {
            self.0.room(before, bytes.len(), recipient)?;
        }
        held.insert(recipient.clone(), before + bytes.len());
        self.0.total.fetch_add(bytes.len(), Ordering::Relaxed);
        Ok(Bytes::from_owner(CountedBytes { bytes, recipient: recipient.clone(), inner: self.0.clone() }))
    }
}

impl UnsentState {
    /// Locks the map of unsent bytes by caller. A panic of another thread poisons the lock, but the numbers in the map stay valid.
    fn held(&self) -> std::sync::MutexGuard<'_, HashMap<Recipient, usize>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that the limits permit `more` bytes in addition to `own`, the unsent bytes of the recipient. A recipient without unsent bytes
    /// is always permitted.
    fn room(&self, own: usize, more: usize, recipient: &Recipient) -> Result<(), UnsentBytesExceeded> {
        if own == 0 {
            return Ok(());
        }
        if own + more > self.each {
            let limit = match recipient {
                Recipient::Key(..) => ReachedLimit::Key,
                Recipient::Manager(..) => ReachedLimit::User,
                Recipient::Bridge(..) => ReachedLimit::Bridge,
            };
            return Err(UnsentBytesExceeded { limit, bytes: self.each });
        }
        if self.total.load(Ordering::Relaxed) + more > self.all {
            return Err(UnsentBytesExceeded { limit: ReachedLimit::All, bytes: self.all });
        }
        Ok(())
    }
}

/// Makes a response body that hyper reads slice by slice, at the pace of the client.
pub fn body(mut bytes: Bytes) -> Body {
    let slices = iter::from_fn(move || (!bytes.is_empty()).then(|| io::Result::Ok(bytes.split_to(bytes.len().min(SLICE)))));
    Body::from_bytes_stream(stream::iter(slices))
}

/// The bytes of a response. They count against the limits until this value is dropped.
struct CountedBytes {
    bytes: Bytes,
    recipient: Recipient,
    inner: Arc<UnsentState>,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for CountedBytes {
    fn drop(&mut self) {
        let mut held = self.inner.held();
        if let Some(own) = held.get_mut(&self.recipient) {
            *own = own.saturating_sub(self.bytes.len());
            if *own == 0 {
                held.remove(&self.recipient);
            }
        }
        self.inner.total.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str) -> Recipient {
        Recipient::Key("s".into(), id.into())
    }

    fn answer(kib: usize) -> Bytes {
        vec![b'x'; kib * 1024].into()
    }

    #[test]
    fn a_key_is_refused_beyond_its_limit_until_its_answers_are_taken() {
        let under_way = UnsentResponses::new(100 * 1024, 1000 * 1024);
        // The recipient has no unsent responses, so even a response beyond the limit is sent.
        let large = under_way.count(&key("a"), answer(120), false).unwrap();
        let refused = UnsentBytesExceeded { limit: ReachedLimit::Key, bytes: 100 * 1024 };
        assert_eq!(under_way.admit(&key("a")), Err(UnsentBytesExceeded { limit: ReachedLimit::Key, bytes: 100 * 1024 }));
        assert_eq!(under_way.count(&key("a"), answer(20), false).unwrap_err(), refused);
        assert_eq!(under_way.admit(&key("b")), Ok(()));
        // `true` stands for a response to a write: it is sent even beyond the limit.
        let written = under_way.count(&key("a"), answer(20), true).unwrap();
        let part = large.slice(10..20);
        drop(large);
        assert_eq!(under_way.0.held().get(&key("a")), Some(&(140 * 1024)));
        drop(part);
        assert_eq!(under_way.admit(&key("a")), Ok(()));
        drop(written);
        assert!(under_way.0.held().is_empty());
        assert_eq!(under_way.0.total.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_limit_of_all_keys_never_refuses_a_key_without_unsent_responses() {
        let under_way = UnsentResponses::new(100 * 1024, 200 * 1024);
        let answers: Vec<_> = ["a", "b", "c"].map(|id| under_way.count(&key(id), answer(80), false).unwrap()).into();
        let refused = Err(UnsentBytesExceeded { limit: ReachedLimit::All, bytes: 200 * 1024 });
        assert_eq!(under_way.admit(&key("a")), refused);
        assert_eq!(under_way.admit(&key("d")), Ok(()));
        drop(answers);
        assert_eq!(under_way.admit(&key("a")), Ok(()));
    }

    #[tokio::test]
    async fn an_answer_goes_out_whole_and_releases_its_share_with_its_last_slice() {
        use futures_util::StreamExt;
        let under_way = UnsentResponses::default();
        let bytes: Bytes = (0..3 * SLICE + 7).map(|at| (at % 251) as u8).collect::<Vec<_>>().into();
        let counted = under_way.count(&key("a"), bytes.clone(), false).unwrap();
        let mut slices = Box::pin(body(counted).into_bytes_stream());
        let mut taken = Vec::new();
        while let Some(slice) = slices.next().await {
            taken.extend_from_slice(&slice.unwrap());
            assert_eq!(under_way.0.held().is_empty(), taken.len() == bytes.len());
        }
        assert_eq!(taken, bytes);
    }
}

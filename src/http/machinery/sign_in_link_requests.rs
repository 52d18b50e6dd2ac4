//! Requests for sign-in links by e-mail: a queue of e-mail addresses, and limits on how often links may be requested.
//!
//! The limits keep mailboxes from being flooded, and apply even without the option `--rate-limit`. Each process counts in memory the
//! requests for each e-mail address, even if no user has the address, and the requests of each client. A client on this machine has no
//! limit: the server takes it for a proxy that forwards the requests of all clients.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use moka::sync::Cache;
use poem::{Addr, http::StatusCode, web::RemoteAddr};
use tokio::sync::mpsc;

use super::{error_responses::ApiError, rate_limits::network};

/// The period in which requests are counted. It begins with the first request for an address or from a client. A sign-in link is valid for
/// the same time.
const WINDOW: Duration = Duration::from_secs(15 * 60);

const REQUESTS_OF_ADDRESS: u32 = 3;
/// The limit of requests from one client. It is higher than the limit for an e-mail address, since all computers of an office may have the
/// same public IP address.
const REQUESTS_OF_CLIENT: u32 = 60;

/// The largest number of requests that wait in the queue. A request waits until the SMTP server has accepted the e-mails of the requests
/// before it.
const WAITING: usize = 100;

/// The largest number of counters in memory: one for each e-mail address and each client. Beyond this number, the least used counters are
/// removed.
const COUNTERS: u64 = 100_000;

/// The e-mail address or the client whose requests are counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum SignInSubject {
    Address(String),
    Client(IpAddr),
}

/// Accepts requests for sign-in links by e-mail.
#[derive(Debug)]
pub struct SignInRequests {
    queue: mpsc::Sender<String>,
    counters: Cache<SignInSubject, Arc<AtomicU32>>,
}

impl SignInRequests {
    /// Makes the queue and the counters. Also returns the receiver of the queue. The background task that sends the e-mails takes the
    /// addresses from this receiver.
    pub fn new() -> (Self, mpsc::Receiver<String>) {
        let (queue, requests) = mpsc::channel(WAITING);
        (Self { queue, counters: Cache::builder().max_capacity(COUNTERS).time_to_live(WINDOW).build() }, requests)
    }

    /// Accepts a client's request to send sign-in links to an e-mail address, or refuses it if a limit is reached.
    pub fn accept(&self, address: String, client: &RemoteAddr) -> Result<(), ApiError> {
        if let Addr::SocketAddr(client) = &client.0
            && !client.ip().to_canonical().is_loopback()
        {
            self.count(
                SignInSubject::Client(network(client.ip())),
                REQUESTS_OF_CLIENT,
                "too many links were asked for from the address of this request",
            )?;
        }
        self.count(
            SignInSubject::Address(address.to_ascii_lowercase()),
            REQUESTS_OF_ADDRESS,
            "`body.email` was given in too many requests",
        )?;
        // If the queue is full, the request is dropped, but the response is the same. The queue fills up only while e-mails are being sent,
        // and only users get e-mails. So an error response would tell the client that users have some of the requested addresses.
        if self.queue.try_send(address).is_err() {
            tracing::error!(waiting = WAITING, "a request for a link by e-mail is dropped: too many wait for the SMTP server");
        }
        Ok(())
    }

    fn count(&self, asker: SignInSubject, limit: u32, refusal: &str) -> Result<(), ApiError> {
        if self.counters.get_with(asker, Arc::default).fetch_add(1, Ordering::Relaxed) < limit {
            return Ok(());
        }
        let message = format!("{refusal}; wait for {} minutes, or use the link that is on its way", WINDOW.as_secs() / 60);
        Err(ApiError { retry_after: Some(WINDOW.as_secs() as u32), ..ApiError::new(StatusCode::TOO_MANY_REQUESTS, message) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(text: &str) -> RemoteAddr {
        RemoteAddr(Addr::SocketAddr(text.parse().unwrap()))
    }

    #[test]
    fn an_address_and_a_client_are_limited() {
        let (requests, mut queue) = SignInRequests::new();
        let one = client("192.0.2.1:1");
        for spelling in ["ann@example.com", "Ann@example.com", "ANN@EXAMPLE.COM"] {
            requests.accept(spelling.to_owned(), &one).unwrap();
        }
        let refused = requests.accept("ann@example.com".to_owned(), &client("192.0.2.2:1")).unwrap_err();
        assert_eq!((refused.status, refused.retry_after), (StatusCode::TOO_MANY_REQUESTS, Some(900)));
        for number in 3..REQUESTS_OF_CLIENT {
            requests.accept(format!("u{number}@example.com"), &one).unwrap();
        }
        assert!(requests.accept("other@example.com".to_owned(), &client("192.0.2.1:9")).is_err());
        requests.accept("other@example.com".to_owned(), &client("192.0.2.2:1")).unwrap();
        assert_eq!(queue.try_recv().unwrap(), "ann@example.com");
    }

    #[test]
    fn requests_beyond_a_full_queue_are_dropped_without_an_error() {
        let (requests, mut queue) = SignInRequests::new();
        for number in 0..WAITING + 5 {
            requests.accept(format!("u{number}@example.com"), &client("127.0.0.1:1")).unwrap();
        }
        assert_eq!(std::iter::from_fn(|| queue.try_recv().ok()).count(), WAITING);
    }
}

//! Rate limits for three things: the requests of one API key, the requests of all keys of a store (tenant) together, and the refused
//! authentications from one IP address. The limits are off unless `--rate-limit` sets them.
//!
//! A request with an invalid key belongs to no store, so it counts against the address that it comes from. This limit refuses no requests
//! with valid keys from the same address, since several callers may share the address of a proxy.

use std::{
    collections::HashMap,
    fmt,
    net::{IpAddr, Ipv6Addr},
    sync::{Mutex, PoisonError},
};

use poem::{Addr, http::StatusCode, web::RemoteAddr};

use super::error_responses::{ApiError, UsedUpRate};
use crate::domain::{
    ids::{KeyId, StoreId},
    time::Timestamp,
};

/// The default limit of all keys of a store together, as a multiple of one key's limit.
const STORE_LIMIT_FACTOR: u32 = 4;

/// The API key, store or IP address that a request counts against.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum RateLimitSubject {
    Key(StoreId, KeyId),
    Store(StoreId),
    /// An IPv4 address, or the IPv6 network that belongs to one caller.
    Address(IpAddr),
}

/// The rate limiter. It permits a number of requests per second for each key and for each store, in bursts of up to the same number. For
/// each address, the limit of requests with refused credentials is the same as the limit of requests of a key.
#[derive(Debug)]
pub struct RateLimit {
    key: u32,
    store: u32,
    paid: Mutex<RateLimitState>,
}

/// The state of the rate limiter, a leaky bucket (GCRA). For each key, store or address it has a time in microseconds (the theoretical
/// arrival time of GCRA): each accepted request moves this time forward by one second divided by the limit.
#[derive(Debug)]
struct RateLimitState {
    until: HashMap<RateLimitSubject, i64>,
    /// When `until` has this many entries, idle entries are removed: those whose time has passed.
    full: usize,
}

/// The number of entries at which idle entries are first removed. After each removal, the next removal is due at twice the number of
/// entries that are left, but not below this number.
const MIN_ENTRIES_TO_SWEEP: usize = 4096;

/// The error of a request that exceeds a rate limit.
#[derive(Debug, PartialEq, Eq)]
pub struct Exceeded {
    what: RateLimitScope,
    per_second: u32,
    /// Whole seconds to wait before a retry.
    seconds: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RateLimitScope {
    Key,
    Store,
    Address,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, per_second, .. } = self;
        match what {
            RateLimitScope::Key => write!(f, "`x-api-key` has used up its rate limit of {per_second} requests a second")?,
            RateLimitScope::Store => {
                write!(f, "`x-api-key` belongs to a store whose keys have used up its rate limit of {per_second} requests a second")?
            }
            RateLimitScope::Address => write!(
                f,
                "the address of this request has used up its rate limit of {per_second} refused keys, sessions or tokens a second"
            )?,
        }
        f.write_str("; wait for `Retry-After` seconds")
    }
}

impl From<Exceeded> for ApiError {
    fn from(exceeded: Exceeded) -> Self {
        let Exceeded { what, per_second, seconds } = exceeded;
        let policy = match what {
            RateLimitScope::Key => "key",
            RateLimitScope::Store => "store",
            RateLimitScope::Address => "address",
        };
        let used_up = Some(UsedUpRate { policy, requests_per_second: per_second, seconds });
        Self { retry_after: Some(seconds), used_up, ..Self::new(StatusCode::TOO_MANY_REQUESTS, exceeded.to_string()) }
    }
}

/// Parses a limit such as `50/s`.
pub fn requests_per_second(text: &str) -> Result<u32, &'static str> {
    let number = text.strip_suffix("/s").and_then(|number| number.parse().ok());
    number.filter(|number| (1..=1_000_000).contains(number)).ok_or("must be a number of requests a second, such as 50/s")
}

impl RateLimit {
    /// Makes a rate limiter from the limits of a key and of a store, in requests per second. An absent `store` means four times the limit
    /// of a key.
    pub fn new(key: u32, store: Option<u32>) -> Self {
        let store = store.unwrap_or_else(|| key.saturating_mul(STORE_LIMIT_FACTOR));
        Self { key, store, paid: Mutex::new(RateLimitState { until: HashMap::new(), full: MIN_ENTRIES_TO_SWEEP }) }
    }

    /// Counts one request against a key and its store.
    pub fn take(&self, store: &StoreId, key: &KeyId, now: Timestamp) -> Result<(), Exceeded> {
        let key = (RateLimitSubject::Key(store.clone(), key.clone()), RateLimitScope::Key, self.key);
        let store = (RateLimitSubject::Store(store.clone()), RateLimitScope::Store, self.store);
        self.pay([key, store], now)
    }

    /// Counts one refused credential (API key, session or token) against the address that it came from. Callers without a network address
    /// (Unix sockets) are not limited.
    pub fn take_refused(&self, from: &RemoteAddr, now: Timestamp) -> Result<(), Exceeded> {
        match &from.0 {
            Addr::SocketAddr(address) => {
                self.pay([(RateLimitSubject::Address(network(address.ip())), RateLimitScope::Address, self.key)], now)
            }
            Addr::Unix(_) | Addr::Custom(..) => Ok(()),
        }
    }

    /// Counts a request against every payer (key, store or address). If one payer has reached its limit, the request counts against none of
    /// them and is refused.
    fn pay<const N: usize>(&self, payers: [(RateLimitSubject, RateLimitScope, u32); N], now: Timestamp) -> Result<(), Exceeded> {
        let now = now.millis().saturating_mul(1000);
        // The map only holds times, so it is valid even if its mutex is poisoned.
        let mut paid = self.paid.lock().unwrap_or_else(PoisonError::into_inner);
        let mut dues = [0; N];
        for ((payer, what, per_second), due) in payers.iter().zip(&mut dues) {
            *due = paid.until.get(payer).copied().unwrap_or(now).max(now) + 1_000_000 / i64::from(*per_second);
            let ahead = *due - now - 1_000_000;
            if ahead > 0 {
                let seconds = u32::try_from(ahead.div_euclid(1_000_000) + 1).unwrap_or(1);
                return Err(Exceeded { what: *what, per_second: *per_second, seconds });
            }
        }
        if paid.until.len() >= paid.full {
            paid.until.retain(|_, until| *until > now);
            paid.full = MIN_ENTRIES_TO_SWEEP.max(2 * paid.until.len());
        }
        paid.until.extend(payers.into_iter().map(|(payer, _, _)| payer).zip(dues));
        Ok(())
    }
}

/// Returns the network that counts as one caller: the IPv4 address itself, or the /64 network of an IPv6 address.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => IpAddr::V6(Ipv6Addr::from_bits(six.to_bits() & !u128::from(u64::MAX))),
        four @ IpAddr::V4(_) => four,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn address(text: &str) -> RemoteAddr {
        RemoteAddr(Addr::SocketAddr(text.parse().unwrap()))
    }

    #[test]
    fn a_key_cannot_exceed_its_limit_of_requests_per_second() {
        let limit = RateLimit::new(requests_per_second("3/s").unwrap(), None);
        let (store, key, other) = ("s".into(), "k".into(), "o".into());
        for _ in 0..3 {
            assert_eq!(limit.take(&store, &key, at(0)), Ok(()));
        }
        assert_eq!(limit.take(&store, &key, at(0)), Err(Exceeded { what: RateLimitScope::Key, per_second: 3, seconds: 1 }));
        assert_eq!(limit.take(&store, &other, at(0)), Ok(()));
        assert_eq!(limit.take(&store, &key, at(1000)), Ok(()));
        assert!(requests_per_second("0/s").is_err() && requests_per_second("5").is_err());
    }

    #[test]
    fn the_keys_of_a_store_share_its_limit() {
        let limit = RateLimit::new(3, Some(4));
        let (store, beside, keys) = ("s".into(), "t".into(), ["k", "l", "m"].map(KeyId::from));
        let taken: Vec<_> = keys.iter().cycle().take(4).map(|key| limit.take(&store, key, at(0))).collect();
        assert_eq!(taken, [Ok(()), Ok(()), Ok(()), Ok(())]);
        let exceeded = limit.take(&store, &keys[1], at(0)).unwrap_err();
        assert_eq!(exceeded, Exceeded { what: RateLimitScope::Store, per_second: 4, seconds: 1 });
        assert_eq!(limit.take(&beside, &keys[1], at(0)), Ok(()));
        // A request that is refused because of the store's limit does not count against the key.
        assert_eq!([0, 1].map(|_| limit.take(&store, &keys[1], at(1000))), [Ok(()), Ok(())]);
    }

    #[test]
    fn failed_authentications_are_limited_per_client_address() {
        let limit = RateLimit::new(1, None);
        for (first, same, other) in [
            ("192.0.2.1:1", "192.0.2.1:2", "192.0.2.2:1"),
            ("[2001:db8::1]:1", "[2001:db8::ffff:0:0:1]:1", "[2001:db8:0:1::1]:1"),
            ("[::ffff:192.0.2.7]:1", "192.0.2.7:9", "192.0.2.8:1"),
        ] {
            assert_eq!(limit.take_refused(&address(first), at(0)), Ok(()));
            assert!(limit.take_refused(&address(same), at(0)).is_err(), "{same}");
            assert_eq!(limit.take_refused(&address(other), at(0)), Ok(()));
        }
    }

    #[test]
    fn idle_entries_of_the_rate_limit_are_removed() {
        let limit = RateLimit::new(1000, None);
        for i in 0..100_000_u32 {
            let from = RemoteAddr(Addr::SocketAddr((std::net::Ipv4Addr::from_bits(i), 1).into()));
            assert_eq!(limit.take_refused(&from, at(i64::from(i))), Ok(()));
        }
        assert!(limit.paid.lock().unwrap().until.len() <= MIN_ENTRIES_TO_SWEEP);
    }
}

//! The rate limit of a key: off unless `--rate-limit` sets one (decisions, section 3).

use std::{collections::HashMap, str::FromStr, sync::Mutex};

use crate::domain::{
    ids::{KeyId, StoreId},
    time::Timestamp,
};

/// So many requests a second for each key, in bursts of up to as many.
#[derive(Debug)]
pub struct RateLimit {
    per_second: u32,
    /// When each key will have paid for what it took, in microseconds.
    paid: Mutex<HashMap<(StoreId, KeyId), i64>>,
}

/// What an unreadable limit is told.
#[derive(Debug, thiserror::Error)]
#[error("must be a number of requests a second, such as 50/s")]
pub struct RateLimitError;

impl FromStr for RateLimit {
    type Err = RateLimitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.strip_suffix("/s").ok_or(RateLimitError)?;
        let per_second = number.parse().ok().filter(|number| (1..=1_000_000).contains(number)).ok_or(RateLimitError)?;
        Ok(Self { per_second, paid: Mutex::default() })
    }
}

impl RateLimit {
    /// Takes one request. The error is the number of whole seconds to wait.
    pub fn take(&self, store: &StoreId, key: &KeyId, now: Timestamp) -> Result<(), u32> {
        let now = now.millis().saturating_mul(1000);
        let cost = 1_000_000 / i64::from(self.per_second);
        // A poisoned map only holds instants: it is as good as before.
        let mut paid = self.paid.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let until = paid.entry((store.clone(), key.clone())).or_insert(now);
        let due = (*until).max(now) + cost;
        let ahead = due - now - 1_000_000;
        if ahead > 0 {
            return Err(u32::try_from(ahead.div_euclid(1_000_000) + 1).unwrap_or(1));
        }
        *until = due;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holds_the_limit_and_no_more() {
        let limit: RateLimit = "3/s".parse().unwrap();
        let (store, key, other) = ("s".into(), "k".into(), "o".into());
        let at = |millis| Timestamp::from_millis(millis);
        for _ in 0..3 {
            assert_eq!(limit.take(&store, &key, at(0)), Ok(()));
        }
        assert_eq!(limit.take(&store, &key, at(0)), Err(1));
        assert_eq!(limit.take(&store, &other, at(0)), Ok(()));
        assert_eq!(limit.take(&store, &key, at(1000)), Ok(()));
        assert!("0/s".parse::<RateLimit>().is_err() && "5".parse::<RateLimit>().is_err());
    }
}

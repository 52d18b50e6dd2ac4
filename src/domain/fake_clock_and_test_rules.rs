//! Test fixtures for all modules: a fake clock, a random number generator with a seed, and the settings (`Rules`) of an API revision that
//! exists only in tests.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use super::{
    clock::Clock,
    revision_rules::{ReceivedAt, Rules},
    time::Timestamp,
};

/// A fake clock whose time changes only when a test moves it.
pub(crate) struct MovableClock(AtomicI64);

impl MovableClock {
    pub fn at(millis: i64) -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(millis)))
    }

    pub fn pass(&self, millis: i64) {
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for MovableClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

/// Pseudo-random number generator (xorshift). With the same seed, which must not be 0, it returns the same numbers in every run.
pub(crate) struct SeededRandom(pub u64);

impl SeededRandom {
    /// Returns a number below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % count as u64) as usize
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.below(256) as u8).collect()
    }
}

pub(crate) const RULES: Rules = Rules {
    revision: "test",
    max_page_size: 100,
    messages_default_page_size: None,
    messages_max_page_size: 100,
    received_at: ReceivedAt::Timestamp,
    page_echo: false,
    strict_cursors: false,
    conversation_history: true,
    unknown_labels_refused: true,
    user_name_fallback: false,
    contacts_by_relevance: true,
    template_operation: None,
};

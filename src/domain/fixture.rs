//! Test fixtures for all modules: a fake clock, and the settings (`Rules`) of a test revision.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use super::{
    clock::Clock,
    rules::{ReceivedAt, Rules},
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

//! Use-cases that read the recorded events of a store in the order of their sequence numbers.

use super::{Error, Result, Service};
use crate::{domain::events::numbered, domain::ids::StoreId, store};

/// A recorded event with its sequence number.
#[derive(Debug)]
pub struct RecordedEvent {
    pub sequence: i64,
    /// The event as a JSON object.
    pub text: String,
}

/// Recorded events of some kinds, in the order of their sequence numbers.
#[derive(Debug)]
pub struct EventPage {
    pub events: Vec<RecordedEvent>,
    /// The sequence number up to which this page contains every event of the requested kinds. The next page begins after this number.
    pub reached: i64,
}

impl Service {
    /// Returns at most `limit` events of these kinds after a sequence number, in order. If `kinds` is empty, returns events of all kinds.
    /// Events that have no sequence number yet get one first, as in [`Self::events_after`].
    pub async fn events_of_kinds(&self, store: &StoreId, after: i64, kinds: &[&str], limit: i64) -> Result<EventPage> {
        if kinds.is_empty() {
            let events = self.events_after(store, after, limit).await?;
            let reached = events.last().map_or(after, |last| last.sequence);
            return Ok(EventPage { events, reached });
        }
        self.number_events(store).await?;
        let (events, reached) = self.db().events_of_kinds(store, after, kinds, limit).await?;
        if events.is_empty() {
            self.must_exist(store).await?;
        }
        Ok(EventPage { events: with_sequence_numbers(store, events)?, reached })
    }

    /// Returns at most `limit` events after a sequence number, in order. If fewer than `limit` events have a number, the events without a
    /// number get one first. If other writers hold the write lock for too long, only the events that already have a number are returned.
    pub async fn events_after(&self, store: &StoreId, sequence: i64, limit: i64) -> Result<Vec<RecordedEvent>> {
        let db = self.db();
        let mut events = db.events_after(store, sequence, limit).await?;
        if i64::try_from(events.len()).is_ok_and(|found| found < limit) {
            self.number_events(store).await?;
            events = db.events_after(store, sequence, limit).await?;
        }
        if events.is_empty() {
            self.must_exist(store).await?;
        }
        with_sequence_numbers(store, events)
    }

    async fn number_events(&self, store: &StoreId) -> Result<()> {
        match self.db().number_events(Some(store), self.clocks_and_ids().now()).await {
            Err(store::Error::Busy) => {
                tracing::warn!("other writers hold the write lock; events without a sequence number are left out");
                Ok(())
            }
            outcome => Ok(outcome?),
        }
    }
}

/// Returns the events with their sequence numbers inserted into the JSON.
fn with_sequence_numbers(store: &StoreId, events: Vec<store::events::Recorded>) -> Result<Vec<RecordedEvent>> {
    let one = |event: store::events::Recorded| {
        let text = numbered(event.sequence, &event.body).and_then(|bytes| String::from_utf8(bytes).ok());
        let damaged = || Error::Internal(format!("the recorded event {} of the store `{store}` is damaged", event.sequence));
        Ok(RecordedEvent { sequence: event.sequence, text: text.ok_or_else(damaged)? })
    };
    events.into_iter().map(one).collect()
}

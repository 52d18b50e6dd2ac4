//! Reading recorded events.

use super::{Error, Result, Service};
use crate::{domain::events::numbered, domain::ids::StoreId, store};

/// A recorded event with its number.
#[derive(Debug)]
pub struct RecordedEvent {
    pub sequence: i64,
    /// A JSON object.
    pub text: String,
}

impl Service {
    /// At most `limit` events after a sequence number, in order; empty at the end. Events without a number get one first,
    /// unless another process holds the write lock for too long; then only numbered events are returned.
    pub async fn events_after(&self, store: &StoreId, sequence: i64, limit: i64) -> Result<Vec<RecordedEvent>> {
        let db = self.db();
        let mut events = db.events_after(store, sequence, limit).await?;
        if i64::try_from(events.len()).is_ok_and(|found| found < limit) {
            match db.number_events(self.world().now()).await {
                Ok(()) => events = db.events_after(store, sequence, limit).await?,
                Err(store::Error::Busy) => {
                    tracing::warn!("other writers hold the write lock; events without a sequence number are left out")
                }
                Err(error) => return Err(error.into()),
            }
        }
        if events.is_empty() {
            self.must_exist(store).await?;
        }
        let told = |event: store::events::Recorded| {
            let text = numbered(event.sequence, &event.body).and_then(|bytes| String::from_utf8(bytes).ok());
            let damaged = || Error::Internal(format!("the recorded event {} of the store `{store}` is damaged", event.sequence));
            Ok(RecordedEvent { sequence: event.sequence, text: text.ok_or_else(damaged)? })
        };
        events.into_iter().map(told).collect()
    }
}

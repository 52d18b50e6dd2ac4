//! Reading recorded events.

use super::{Error, Result};
use crate::{
    domain::ids::StoreId,
    store::{Db, events::Recorded},
};

/// Events of a page.
const PAGE: i64 = 500;

/// The next events behind a number, in their order; none at the end.
pub async fn after(db: &Db, store: &StoreId, sequence: i64) -> Result<Vec<Recorded>> {
    db.number_events().await?;
    let events = db.events_after(store, sequence, PAGE).await?;
    if events.is_empty() && !db.store_exists(store).await? {
        return Err(Error::NotFound(format!("there is no store `{store}`")));
    }
    Ok(events)
}

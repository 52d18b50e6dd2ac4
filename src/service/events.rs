//! Reading recorded events.

use super::{Error, Result};
use crate::{
    domain::{clock::World, ids::StoreId},
    store::{self, Db, events::Recorded},
};

/// Events of a page.
const PAGE: i64 = 500;

/// The next events behind a number, in their order; none at the end. Those that have no number yet get one first, unless
/// another process writes for so long that only those which have one can be told.
pub async fn after(db: &Db, world: &World, store: &StoreId, sequence: i64) -> Result<Vec<Recorded>> {
    let mut events = db.events_after(store, sequence, PAGE).await?;
    if events.len() < PAGE as usize {
        match db.number_events(world.now()).await {
            Ok(()) => events = db.events_after(store, sequence, PAGE).await?,
            Err(store::Error::Busy) => tracing::warn!("other writers hold the database; events without a number are left out"),
            Err(error) => return Err(error.into()),
        }
    }
    if events.is_empty() && !db.store_exists(store).await? {
        return Err(Error::NotFound(format!("there is no store `{store}`")));
    }
    Ok(events)
}

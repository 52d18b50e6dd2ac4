//! The feed of recorded events: for whoever would rather ask than be told.

use poem_openapi::{Object, OpenApi};
use serde::Serialize;

use super::{
    auth::Managed,
    params::{Limit, Position},
    webhooks::EventKinds,
};
use crate::{
    domain::time::Timestamp,
    http::{
        error::{Failure, SettingsListing},
        params::Query,
        reply::{All, Reply},
        values::{AnyObject, Listed, Stored, ValueSet},
    },
};

/// Who causes events.
#[derive(Debug, Clone)]
pub struct Actors;

impl ValueSet for Actors {
    const NAME: &'static str = "ActorType";
    const OPEN: bool = false;
    const VALUES: &'static [&'static str] = &["contact", "user", "api_key", "ai", "system"];
}

/// Who caused an event.
#[derive(Debug, Object, Serialize)]
pub struct Actor {
    r#type: Listed<Actors>,
    #[oai(skip_serializing_if_is_none)]
    id: Option<String>,
}

/// Something that happened, as webhooks are sent it.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
pub struct Event {
    id: String,
    r#type: Listed<EventKinds>,
    timestamp: Timestamp,
    /// The revision of the contract that `data` is written in.
    api_revision: String,
    store_id: String,
    /// Increases in the order in which changes were committed: whoever has seen one has seen all below it.
    sequence: i64,
    actor: Actor,
    /// The record that changed, as the read operations of the revision return it.
    data: AnyObject,
    /// What was there before.
    previous: Option<AnyObject>,
}

/// Recorded events.
#[derive(Debug)]
pub struct Events;

#[OpenApi(tag = "super::document::Tag::Events")]
impl Events {
    /// List events
    ///
    /// Lists recorded events in the order of their `sequence`. Whoever repeats it with the last `sequence` received misses
    /// none.
    #[oai(path = "/events", method = "get", operation_id = "listEvents")]
    async fn list_events(
        &self,
        managed: Managed,
        /// Only events behind this `sequence`.
        after: Query<Option<Position>>,
        /// At most so many.
        limit: Query<Limit>,
    ) -> Result<Reply<All<Event>>, Failure<SettingsListing>> {
        let after = after.0.map_or(0, |position| position.0);
        let events = managed.api.service.events_after(managed.store(), after, limit.0.0).await?;
        let events: Vec<Stored<Event>> = events.into_iter().filter_map(|event| Stored::new(event.text)).collect();
        Ok(Reply::of(&managed.context, &events, vec![]))
    }
}

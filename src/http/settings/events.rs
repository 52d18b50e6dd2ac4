//! The feed of recorded events, for clients that ask for events instead of having them delivered to a webhook.

use poem_openapi::OpenApi;

use super::{
    auth::Permitted,
    grants,
    params::{LimitParam, PositionParam},
};
use crate::http::{
    events::Event,
    machinery::{
        error::{Failure, SettingsListing},
        params::Query,
        reply::{All, Reply},
    },
    schemas::value_types::StoredJson,
};

/// Recorded events.
#[derive(Debug)]
pub struct EventOperations;

#[OpenApi(tag = "crate::http::settings::tags::SettingsTag::Events")]
impl EventOperations {
    /// List events
    ///
    /// Lists recorded events in the order of their `sequence`. A client that sends the last `sequence` it received as `after` misses no
    /// event.
    #[oai(path = "/events", method = "get", operation_id = "listEvents")]
    async fn list_events(
        &self,
        managed: Permitted<grants::Events>,
        /// Only events with a greater `sequence` than this one.
        after: Query<Option<PositionParam>>,
        /// The largest number of events to return.
        limit: Query<LimitParam>,
    ) -> Result<Reply<All<Event>>, Failure<SettingsListing>> {
        let after = after.0.map_or(0, |position| position.0);
        let events = managed.state.service.events_after(managed.store(), after, limit.0.0).await?;
        let events: Vec<StoredJson<Event>> = events.into_iter().filter_map(|event| StoredJson::new(event.text)).collect();
        Ok(Reply::of(&managed.context, &events, vec![]))
    }
}

//! The feed of recorded events, for clients that poll for events instead of receiving them at a webhook.

use poem_openapi::OpenApi;

use super::{
    auth::GrantedRequest,
    next_after_header::{FeedReply, next_after},
    params::{EnumListParam, LimitParam, PositionParam, WaitParam},
    required_grants,
};
use crate::http::{
    events::{Event, EventKinds},
    machinery::{
        error_responses::{Failure, SettingsListing},
        params::Query,
        success_responses::Reply,
    },
    schemas::value_types::StoredJson,
};

/// The operation on recorded events.
#[derive(Debug)]
pub struct EventOperations;

#[OpenApi(tag = "crate::http::settings::openapi_tags::SettingsTag::Events")]
impl EventOperations {
    /// List events
    ///
    /// Lists recorded events in the order of their `sequence`, which is the order in which changes were committed. A client that sends the
    /// last `sequence` it received as `after` gets every event once. With `wait`, the answer comes as soon as there is an event. With
    /// `kinds`, a client sends `x-next-after` as the next `after`, so that the server does not read the events of other kinds again.
    #[oai(path = "/events", method = "get", operation_id = "listEvents")]
    async fn list_events(
        &self,
        managed: GrantedRequest<required_grants::Events>,
        /// Only events with a greater `sequence` than this one.
        after: Query<Option<PositionParam>>,
        /// Only events of these kinds, separated by commas or repeated. Absent or empty: events of all kinds.
        kinds: Query<EnumListParam<EventKinds>>,
        /// For how many seconds to wait for an event if there is none. 0: the answer comes at once. After that time the answer is an empty
        /// list. At most 16 requests of a user wait at a time.
        wait: Query<WaitParam>,
        /// The largest number of events to return.
        limit: Query<LimitParam>,
    ) -> Result<Reply<FeedReply<Event>>, Failure<SettingsListing>> {
        let (service, kinds, limit) = (&managed.state.service, kinds.0.0, limit.0.0);
        let mut reached = after.0.map_or(0, |position| position.0);
        let mut poll = managed.state.long_polls.begin(&managed.context, wait.0.0, service.commits());
        let events = loop {
            let page = service.events_of_kinds(managed.store(), reached, &kinds, limit).await?;
            reached = page.reached;
            if !page.events.is_empty() || !poll.look_again().await? {
                break page.events;
            }
        };
        let events: Vec<StoredJson<Event>> = events.into_iter().filter_map(|event| StoredJson::new(event.text)).collect();
        Ok(Reply::of(&managed.context, &events, next_after(reached)))
    }
}

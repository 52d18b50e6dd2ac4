//! Change data capture: operations with which a program keeps a copy of a store's records. The program, such as the command
//! `counterpart copy`, reads a snapshot first, and then the feed of changed records.

use poem::http::HeaderValue;
use poem_openapi::{
    Object, OpenApi,
    registry::{MetaHeader, MetaSchema, MetaSchemaRef, Registry},
    types::Type,
};
use serde::Serialize;
use serde_json::value::to_raw_value;

use super::{
    auth::GrantedRequest,
    next_after_header::{FeedReply, next_after, next_after_header},
    params::{EnumListParam, LimitParam, PositionParam, WaitParam},
    required_grants,
};
use crate::{
    domain::ndjson_records::{Record, RecordKind},
    http::{
        machinery::{
            envelope_schema::header,
            error_responses::{ApiError, Failure, SettingsFeed, SettingsListing},
            params::{Choice, Id, OneOf, Query, Required},
            success_responses::{All, Reply, ReplyShape},
        },
        schemas::value_types::{AnyObject, EnumValue, StoredJson, ValueSet},
    },
};

/// The kinds of records that the feed and the snapshot contain.
#[derive(Debug, Clone)]
pub struct RecordKinds;

impl ValueSet for RecordKinds {
    const NAME: &'static str = "RecordKind";
    const DESCRIPTION: &'static str = "The kinds of records, in the order of an export: a record refers only to records of earlier kinds.";
    const OPEN: bool = false;
    const VALUES: &'static [&'static str] = &{
        let mut names = [""; RecordKind::ALL.len()];
        let mut i = 0;
        while i < names.len() {
            names[i] = RecordKind::ALL[i].name();
            i += 1;
        }
        names
    };
}

impl Choice for RecordKinds {
    const VALUES: &'static [&'static str] = <Self as ValueSet>::VALUES;
}

/// A record of the store as it is now, or the note that it was deleted.
#[derive(Debug, Object, Serialize)]
#[oai(rename = "RecordChange", rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct RecordChangeView {
    /// The place of the change in the feed: increases in the order in which changes were committed. Absent in a snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<i64>,
    /// The kind of the record.
    kind: EnumValue<RecordKinds>,
    /// Identifies the record among those of its kind.
    id: String,
    /// The record, with the same properties as in an export (`counterpart export`). Absent if the record was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<StoredJson<AnyObject>>,
    /// `true` if the record breaks a rule that was introduced after the record was stored; otherwise absent. A line of an export has the
    /// same property.
    #[serde(skip_serializing_if = "Option::is_none")]
    as_stored: Option<bool>,
    /// `true` if there is no such record any more; otherwise absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<bool>,
}

impl RecordChangeView {
    fn of(sequence: Option<i64>, kind: RecordKind, id: String, record: Option<&Record>) -> Result<Self, ApiError> {
        let raw = record.map(to_raw_value).transpose().map_err(|error| {
            tracing::error!(%error, kind = kind.name(), id, "a record cannot be written as JSON");
            ApiError::internal()
        })?;
        Ok(Self {
            sequence,
            kind: kind.name().to_owned().into(),
            id,
            as_stored: record.is_some_and(Record::breaks_a_later_rule).then_some(true),
            deleted: record.is_none().then_some(true),
            record: raw.map(StoredJson::from),
        })
    }
}

/// The header that says whether a page of the feed is the last one.
const UP_TO_DATE: &str = "x-up-to-date";

/// The response of the operation that returns a page of the feed of changes, with its headers.
#[derive(Debug)]
pub struct Changes;

impl ReplyShape for Changes {
    const DATA: &'static str = All::<RecordChangeView>::DATA;

    fn envelope() -> String {
        All::<RecordChangeView>::envelope()
    }

    fn data() -> MetaSchemaRef {
        All::<RecordChangeView>::data()
    }

    fn headers() -> Vec<MetaHeader> {
        let description = "`true`: when the page was read, there was no change behind it. A copy that has applied every page so far was equal to \
                           the store at that moment.";
        vec![next_after_header(), header(UP_TO_DATE, description, true, MetaSchema::new("boolean"))]
    }

    fn register(registry: &mut Registry) {
        RecordChangeView::register(registry);
    }
}

/// The operations on the feed of changed records.
#[derive(Debug)]
pub struct ChangeOperations;

#[OpenApi(tag = "crate::http::settings::openapi_tags::SettingsTag::Changes")]
impl ChangeOperations {
    /// List changed records
    ///
    /// Lists the records that changed, of every kind and by whatever cause, in the order of their `sequence`. Each record is returned as it
    /// is now, once on a page, however often it changed; a deleted record is returned without `record`. Begin with a snapshot (GET
    /// /changes/snapshot), and then send `x-next-after` of each answer as the next `after`. Changes are kept for 7 days; a feed that
    /// is not read for 7 days ends. After that the answer is 410, and the copy has to begin again with a snapshot.
    #[oai(path = "/changes", method = "get", operation_id = "listChanges")]
    async fn list_changes(
        &self,
        managed: GrantedRequest<required_grants::Events>,
        /// Only changes with a greater `sequence` than this one. Send `x-next-after` of the previous page, or of the first page of a
        /// snapshot.
        after: Query<Required<PositionParam>>,
        /// Only records of these kinds, separated by commas or repeated. Absent or empty: records of all kinds.
        kinds: Query<EnumListParam<RecordKinds>>,
        /// For how many seconds to wait for a change if there is none. 0: the answer comes at once. After that time the answer is an empty
        /// list. At most 16 requests of a user wait at a time.
        wait: Query<WaitParam>,
        /// The largest number of changes to read. Several changes of one record are returned as one item.
        limit: Query<LimitParam>,
    ) -> Result<Reply<Changes>, Failure<SettingsFeed>> {
        let service = &managed.state.service;
        let kinds: Vec<RecordKind> = kinds.0.0.into_iter().filter_map(RecordKind::of).collect();
        let (limit, mut reached) = (limit.0.0.unsigned_abs(), after.0.0.0);
        let mut poll = managed.state.long_polls.begin(&managed.context, wait.0.0, service.commits());
        let page = loop {
            let page = service.changes_after(managed.store(), reached, &kinds, limit).await?;
            reached = page.reached;
            if !page.changes.is_empty() || !poll.look_again().await? {
                break page;
            }
        };
        let changes = page.changes.into_iter();
        let changes = changes.map(|change| RecordChangeView::of(Some(change.sequence), change.kind, change.id, change.record.as_ref()));
        let changes: Vec<RecordChangeView> = changes.collect::<Result<_, _>>()?;
        let mut headers = next_after(reached);
        headers.push((UP_TO_DATE, HeaderValue::from_static(if page.is_last { "true" } else { "false" })));
        Ok(Reply::of(&managed.context, &changes, headers))
    }

    /// List records for a copy
    ///
    /// Lists the records of one kind, as they are now, in the order of their ids. Read every kind to its end, and keep `x-next-after` of
    /// the very first page: with it as `after`, GET /changes returns every change since that page was read. The first request of a store
    /// starts the recording of changes.
    #[oai(path = "/changes/snapshot", method = "get", operation_id = "listRecords")]
    async fn list_records(
        &self,
        managed: GrantedRequest<required_grants::Events>,
        /// The kind of the records.
        kind: Query<Required<OneOf<RecordKinds>>>,
        /// Only records after the one with this id. To read on, send the `id` of the last record received.
        #[oai(name = "afterId")]
        after_id: Query<Option<Id<String>>>,
        /// The largest number of records to return. A page with fewer records is the last page of this kind of record.
        limit: Query<LimitParam>,
    ) -> Result<Reply<FeedReply<RecordChangeView>>, Failure<SettingsListing>> {
        let kind = RecordKind::of(&kind.0.0.0).ok_or_else(ApiError::internal)?;
        let after_id = after_id.0.map(|id| id.0);
        let page = managed.state.service.snapshot_page(managed.store(), kind, after_id.as_deref(), limit.0.0.unsigned_abs()).await?;
        let records = page.records.iter().map(|record| RecordChangeView::of(None, kind, record.id().to_owned(), Some(record)));
        let records: Vec<RecordChangeView> = records.collect::<Result<_, _>>()?;
        Ok(Reply::of(&managed.context, &records, next_after(page.start)))
    }
}

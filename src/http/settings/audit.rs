//! The operation of the settings API that lists the audit log: what was changed, when, and by whom.

use poem_openapi::{Object, OpenApi};
use serde::Serialize;

use super::{
    auth::GrantedRequest,
    params::{LimitParam, PositionParam, SubjectKind},
    required_grants,
};
use crate::{
    domain::{
        settings_access::{AuditLogEntry, Subject},
        time::Timestamp,
    },
    http::{
        machinery::{
            error_responses::{Failure, SettingsListing},
            params::{OneOf, Query},
            success_responses::{All, Reply},
        },
        schemas::value_types::{AnyObject, StoredJson},
    },
};

/// An entry of the audit log, which records one change.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// The entry's place in the log; a newer entry has a greater one.
    position: i64,
    /// When the change was made.
    at: Timestamp,
    /// The `userId` of the user who made the change; absent if the command line or the server itself made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<String>,
    /// What the change was made with: `session`, `token` or `command_line`; `system` if the server itself made it.
    via: String,
    /// The `requestId` of the request that made the change; absent if there was no request.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    /// What was done, such as `key.rotated`.
    action: String,
    /// The kind of the changed record.
    subject_type: String,
    /// The id of the changed record, of the kind that `subjectType` names; for a session the `userId` of its user.
    subject_id: String,
    /// Details of the change, such as the record's new properties. Never a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<StoredJson<AnyObject>>,
}

impl From<AuditLogEntry> for AuditEntry {
    fn from(entry: AuditLogEntry) -> Self {
        Self {
            position: entry.position,
            at: entry.at,
            user_id: entry.user_id.map(|id| id.into_string()),
            via: entry.via,
            request_id: entry.request_id,
            action: entry.action,
            subject_type: entry.subject_kind,
            subject_id: entry.subject_id,
            detail: StoredJson::new(entry.detail),
        }
    }
}

/// The operation on the audit log.
#[derive(Debug)]
pub struct AuditOperations;

#[OpenApi(tag = "crate::http::settings::openapi_tags::SettingsTag::Audit")]
impl AuditOperations {
    /// List changes
    ///
    /// Lists the changes that were made by the settings API, by the command line and by the server itself, the newest first. Entries are
    /// never changed or deleted.
    #[oai(path = "/audit", method = "get", operation_id = "listAuditEntries")]
    async fn list_audit_entries(
        &self,
        managed: GrantedRequest<required_grants::Audit>,
        /// Only changes of records of this kind.
        #[oai(name = "subjectType")]
        subject_type: Query<Option<OneOf<SubjectKind>>>,
        /// Only entries whose `position` is smaller than this value, which are older. To read on, send the `position` of the last entry
        /// received.
        before: Query<Option<PositionParam>>,
        /// The largest number of entries to return.
        limit: Query<LimitParam>,
    ) -> Result<Reply<All<AuditEntry>>, Failure<SettingsListing>> {
        let subject = subject_type.0.and_then(|kind| Subject::ALL.into_iter().find(|subject| subject.name() == kind.0));
        let before = before.0.map(|position| position.0);
        let entries = managed.state.service.audited(managed.store(), subject, before, limit.0.0).await?;
        let entries: Vec<AuditEntry> = entries.into_iter().map(Into::into).collect();
        Ok(Reply::of(&managed.context, &entries, vec![]))
    }
}

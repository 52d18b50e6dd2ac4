//! The log of changes.

use poem_openapi::{Object, OpenApi};
use serde::Serialize;

use super::{
    auth::Managed,
    params::{LimitParam, PositionParam, SubjectKind},
};
use crate::{
    domain::{
        settings::{Audited, Subject},
        time::Timestamp,
    },
    http::{
        machinery::{
            error::{Failure, SettingsListing},
            params::{OneOf, Query},
            reply::{All, Reply},
        },
        schemas::value_types::{AnyObject, StoredJson},
    },
};

/// A change of settings.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// Its place in the log.
    position: i64,
    /// When the change was made.
    at: Timestamp,
    /// The user who made it; absent: the command line, or the server itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<String>,
    /// How it came in: `session`, `token`, `command_line`, or `system` for the server's own doing.
    via: String,
    /// The `requestId` that it was answered with.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    /// What was done, such as `key.rotated`.
    action: String,
    /// The kind of what it was done to.
    subject_type: String,
    /// The id of the changed record, of the kind that `subjectType` names; for a session the `userId` of its user.
    subject_id: String,
    /// How it is since then. Never a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<StoredJson<AnyObject>>,
}

impl From<Audited> for AuditEntry {
    fn from(entry: Audited) -> Self {
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

/// The log of changes.
#[derive(Debug)]
pub struct AuditOperations;

#[OpenApi(tag = "crate::http::settings::tags::SettingsTag::Audit")]
impl AuditOperations {
    /// List changes
    ///
    /// Lists what was changed by way of the settings and by the command line, the newest first. The log only grows.
    #[oai(path = "/audit", method = "get", operation_id = "listAuditEntries")]
    async fn list_audit_entries(
        &self,
        managed: Managed,
        /// Only changes of this kind of record.
        #[oai(name = "subjectType")]
        subject_type: Query<Option<OneOf<SubjectKind>>>,
        /// Only changes before this `position`: that of the last one received.
        before: Query<Option<PositionParam>>,
        /// At most so many.
        limit: Query<LimitParam>,
    ) -> Result<Reply<All<AuditEntry>>, Failure<SettingsListing>> {
        let subject = subject_type.0.and_then(|kind| Subject::ALL.into_iter().find(|subject| subject.name() == kind.0));
        let before = before.0.map(|position| position.0);
        let entries = managed.state.service.audited(managed.store(), subject, before, limit.0.0).await?;
        let entries: Vec<AuditEntry> = entries.into_iter().map(Into::into).collect();
        Ok(Reply::of(&managed.context, &entries, vec![]))
    }
}

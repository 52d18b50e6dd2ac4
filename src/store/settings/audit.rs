//! The audit log, to which each change of a store's settings is appended. The database refuses to change or remove rows of the log.

use sea_orm::{
    ActiveValue::{NotSet, Set},
    ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
};

use crate::{
    domain::{
        ids::{StoreId, UserId},
        settings_access::{AuditLogEntry, Editor, Entry, Subject},
        time::Timestamp,
    },
    store::{Db, Result, entity::audit, transaction::store_transaction::Write},
};

impl Write {
    /// Appends the changes of one editor to the audit log.
    pub async fn audit(&self, editor: &Editor, entries: &[Entry]) -> Result<()> {
        for entry in entries {
            let row = audit::ActiveModel {
                position: NotSet,
                store_id: Set(self.store().to_string()),
                at: Set(self.now().millis()),
                user_id: Set(editor.user_id.as_ref().map(UserId::to_string)),
                via: Set(editor.via.name().to_owned()),
                request_id: Set(editor.request_id.clone()),
                action: Set(entry.action.to_owned()),
                subject_kind: Set(entry.subject.name().to_owned()),
                subject_id: Set(entry.subject_id.clone()),
                detail: Set(entry.detail.to_string()),
            };
            self.insert(row).await?;
        }
        Ok(())
    }
}

impl Db {
    /// Returns at most `limit` entries of the audit log, the newest first: the entries before the position `before`, or the newest entries
    /// if there is no `before`. With a `subject`, returns only the entries of subjects of this kind.
    pub async fn audited(&self, store: &StoreId, subject: Option<Subject>, before: Option<i64>, limit: i64) -> Result<Vec<AuditLogEntry>> {
        let rows = self.find_all(
            audit::Entity::find()
                .filter(audit::Column::StoreId.eq(store))
                .apply_if(subject, |query, subject| query.filter(audit::Column::SubjectKind.eq(subject.name())))
                .apply_if(before, |query, before| query.filter(audit::Column::Position.lt(before)))
                .order_by_desc(audit::Column::Position)
                .limit(u64::try_from(limit).unwrap_or_default()),
        );
        Ok(rows.await?.into_iter().map(Into::into).collect())
    }
}

impl From<audit::Model> for AuditLogEntry {
    fn from(row: audit::Model) -> Self {
        Self {
            position: row.position,
            at: Timestamp::from_millis(row.at),
            user_id: row.user_id.map(Into::into),
            via: row.via,
            request_id: row.request_id,
            action: row.action,
            subject_kind: row.subject_kind,
            subject_id: row.subject_id,
            detail: row.detail,
        }
    }
}

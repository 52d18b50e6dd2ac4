//! The audit log, to which each change of a store's settings is appended. The database refuses to change or remove rows of the log.

use sea_orm::{
    ActiveValue::{NotSet, Set},
    ColumnTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
};

use crate::{
    domain::{
        ids::{StoreId, UserId},
        settings_access::{AuditLogEntry, Editor, Entry, Subject},
    },
    store::{
        Db, Result,
        entity::audit,
        row_decoding::{Row, stored_record},
        sql_from_entities::find,
        transaction::store_transaction::Write,
    },
};

stored_record! {
    read AuditLogEntry in audit: position, at, user_id, via, request_id, action, subject_kind, subject_id, detail
}

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
        let query = find::<AuditLogEntry>()
            .filter(audit::Column::StoreId.eq(store))
            .apply_if(subject, |query, subject| query.filter(audit::Column::SubjectKind.eq(subject.name())))
            .apply_if(before, |query, before| query.filter(audit::Column::Position.lt(before)))
            .order_by_desc(audit::Column::Position)
            .limit(u64::try_from(limit).unwrap_or_default());
        self.select(query, AuditLogEntry::decode).await
    }
}

//! What was changed of a store's settings. Rows are added with the change and stay: the database refuses anything else.

use super::{Db, Result, sql::Sql, write::Write};
use crate::domain::{
    ids::{StoreId, UserId},
    settings::{Audited, Editor, Entry, Subject},
};

impl Write {
    /// Writes changes down, all by one hand.
    pub async fn audit(&self, editor: &Editor, entries: &[Entry]) -> Result<()> {
        for entry in entries {
            let mut sql = self
                .sql("INSERT INTO audit (store_id, at, user_id, via, request_id, action, subject_kind, subject_id, detail) VALUES ($1, ");
            sql.integer(self.now().millis()).push(", ").optional_text(editor.user_id.as_ref().map(UserId::as_str));
            sql.push(", ").text(editor.via.name()).push(", ").optional_text(editor.request_id.as_deref());
            for text in [entry.action, entry.subject.name(), &entry.subject_id, &entry.detail.to_string()] {
                sql.push(", ").text(text);
            }
            sql.push(")");
            self.run(sql).await?;
        }
        Ok(())
    }
}

impl Db {
    /// At most `limit` changes before a position, the newest first.
    pub async fn audited(&self, store: &StoreId, subject: Option<Subject>, before: Option<i64>, limit: i64) -> Result<Vec<Audited>> {
        let mut sql = Sql::of(
            store,
            "SELECT position, at, user_id, via, request_id, action, subject_kind, subject_id, detail FROM audit WHERE store_id = $1",
        );
        if let Some(subject) = subject {
            sql.push(" AND subject_kind = ").text(subject.name());
        }
        if let Some(before) = before {
            sql.push(" AND position < ").integer(before);
        }
        sql.push(" ORDER BY position DESC").limit(limit);
        self.all(sql, |cells| {
            Ok(Audited {
                position: cells.take()?,
                at: cells.time()?,
                user_id: cells.optional_id()?,
                via: cells.take()?,
                request_id: cells.take()?,
                action: cells.take()?,
                subject_kind: cells.take()?,
                subject_id: cells.take()?,
                detail: cells.take()?,
            })
        })
        .await
    }
}

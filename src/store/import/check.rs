//! What must hold of all records together, asked of the database at the end: references lead somewhere, and what a
//! ticket or a conversation repeats of another record agrees with it.

use super::{At, Fault, Import, MAX_VARIABLES, Outcome, text, values_list};
use crate::{
    domain::{
        ids::{AccountId, FieldId},
        records::Kind,
    },
    store::Result,
};

/// `(id, displayType, dataType, maxItems)` of a definition.
pub type Definition = (FieldId, String, String, Option<i64>);

/// Limits of section 8.
const CONTACT_FIELDS: i64 = 100;
const ACTIVE_CONTACT_FIELDS: i64 = 20;

impl Import {
    /// The definitions of ticket or contact fields that are stored now.
    pub async fn definitions(&self, kind: Kind) -> Result<Vec<Definition>> {
        let sql = format!("SELECT id, display_type, data_type, max_items FROM {} WHERE store_id = ?", super::table(kind));
        let rows = self.rows(&sql, [self.store.as_str().into()]).await?;
        rows.iter().map(|row| Ok((text(row, 0)?.into(), text(row, 1)?, text(row, 2)?, row.try_get_by_index(3)?))).collect()
    }

    /// The first of these accounts that the store does not have.
    pub async fn missing_account(&self, ids: &[AccountId]) -> Result<Option<AccountId>> {
        for chunk in ids.chunks(MAX_VARIABLES - 1) {
            let sql = format!(
                "SELECT v.column1 FROM (VALUES {}) AS v LEFT JOIN accounts a ON a.id = v.column1 AND a.store_id = ? WHERE a.id IS NULL LIMIT 1",
                values_list(chunk.len(), 1)
            );
            let values = chunk.iter().map(|id| id.as_str().into()).chain([self.store.as_str().into()]);
            if let Some(row) = self.rows(&sql, values).await?.first() {
                return Ok(Some(text(row, 0)?.into()));
            }
        }
        Ok(None)
    }

    /// Tests the references and agreements of everything that came. Tickets must have been completed before.
    pub(super) async fn check(&self) -> Result<Outcome> {
        for (kinds, property, missing, sql) in [
            (
                &[Kind::Message, Kind::Ticket, Kind::Comment][..],
                "conversationId",
                "conversation",
                "SELECT t.id FROM import_touched t LEFT JOIN conversations c ON c.store_id = ? AND c.id = t.id WHERE c.id IS NULL LIMIT 1",
            ),
            (
                &[Kind::Conversation],
                "contactId",
                "contact",
                "SELECT c.contact_id FROM import_touched t JOIN conversations c ON c.store_id = ? AND c.id = t.id \
                 LEFT JOIN contacts p ON p.store_id = c.store_id AND p.id = c.contact_id WHERE p.id IS NULL LIMIT 1",
            ),
            (
                &[Kind::Conversation],
                "accountId",
                "account",
                "SELECT c.account_id FROM import_touched t JOIN conversations c ON c.store_id = ? AND c.id = t.id \
                 LEFT JOIN accounts a ON a.store_id = c.store_id AND a.id = c.account_id WHERE a.id IS NULL LIMIT 1",
            ),
            (
                &[Kind::Template],
                "accountId",
                "account",
                "SELECT t.account_id FROM templates t LEFT JOIN accounts a ON a.store_id = t.store_id AND a.id = t.account_id \
                 WHERE t.store_id = ? AND a.id IS NULL LIMIT 1",
            ),
        ] {
            if let Some(row) = self.rows(sql, [self.store.as_str().into()]).await?.first() {
                let value = text(row, 0)?;
                let reason = format!("there is no {missing} `{value}`, neither in the file nor in the store");
                return Ok(Err(Fault { at: At::Where { kinds, property, value }, property, reason }));
            }
        }
        self.agreements().await
    }

    async fn agreements(&self) -> Result<Outcome> {
        let store = || [self.store.as_str().into()];
        let whole_store = self.accounts_came && self.held(Kind::Conversation);
        let scope = if whole_store { "" } else { " AND c.id IN (SELECT id FROM import_touched)" };
        let sql = format!(
            "SELECT c.id, c.channel, a.channel, a.id FROM conversations c JOIN accounts a ON a.store_id = c.store_id AND a.id = c.account_id \
             WHERE c.store_id = ? AND c.channel <> a.channel{scope} LIMIT 1"
        );
        if let Some(row) = self.rows(&sql, store()).await?.first() {
            let reason = format!("is `{}` where its account `{}` is of channel `{}`", text(row, 1)?, text(row, 3)?, text(row, 2)?);
            return Ok(Err(at_id(Kind::Conversation, text(row, 0)?, "channel", reason)));
        }
        let sql = "SELECT t.id, a.channel, a.id FROM templates t JOIN accounts a ON a.store_id = t.store_id AND a.id = t.account_id \
                   WHERE t.store_id = ? AND a.channel <> 'whatsapp' LIMIT 1";
        if let Some(row) = self.rows(sql, store()).await?.first() {
            let reason = format!("`{}` is an account of channel `{}`; templates belong to whatsapp accounts", text(row, 2)?, text(row, 1)?);
            return Ok(Err(at_id(Kind::Template, text(row, 0)?, "accountId", reason)));
        }
        for (property, column) in [("channel", "channel"), ("accountId", "account_id"), ("contactId", "contact_id")] {
            let sql = format!(
                "SELECT t.id, t.{column}, c.{column}, c.id FROM import_tickets i JOIN tickets t ON t.store_id = ? AND t.id = i.id \
                 JOIN conversations c ON c.store_id = t.store_id AND c.id = t.conversation_id WHERE t.{column} <> c.{column} LIMIT 1"
            );
            if let Some(row) = self.rows(&sql, store()).await?.first() {
                let reason = format!("is `{}` where its conversation `{}` has `{}`", text(row, 1)?, text(row, 3)?, text(row, 2)?);
                return Ok(Err(at_id(Kind::Ticket, text(row, 0)?, property, reason)));
            }
        }
        let sql = "SELECT COUNT(*), COUNT(CASE WHEN active THEN 1 END) FROM contact_fields WHERE store_id = ?";
        if let Some(row) = self.rows(sql, store()).await?.first() {
            let (all, active): (i64, i64) = (row.try_get_by_index(0)?, row.try_get_by_index(1)?);
            if all > CONTACT_FIELDS || active > ACTIVE_CONTACT_FIELDS {
                let reason = format!(
                    "the store would have {all} contact fields, {active} of them active; {CONTACT_FIELDS} and {ACTIVE_CONTACT_FIELDS} are allowed"
                );
                return Ok(Err(Fault { at: At::Where { kinds: &[], property: "", value: String::new() }, property: "contactField", reason }));
            }
        }
        Ok(Ok(()))
    }
}

/// The record of that kind and id is at fault.
pub(super) fn at_id(kind: Kind, id: String, property: &'static str, reason: String) -> Fault {
    let kinds = match kind {
        Kind::Template => &[Kind::Template][..],
        Kind::Ticket => &[Kind::Ticket],
        Kind::Message => &[Kind::Message],
        _ => &[Kind::Conversation],
    };
    Fault { at: At::Where { kinds, property: "id", value: id }, property, reason }
}

//! Consistency checks at the end of an import, made by queries over all records: references lead to existing records, and the values that a
//! ticket or a conversation copies from another record agree with that record.

use crate::{
    domain::{
        ids::{AccountId, FieldId},
        ndjson_records::RecordKind,
    },
    store::{
        Result,
        import::{
            At, Import, ImportFault, ImportResult, MAX_FAULTS,
            bulk_statements::{self, Bulk},
            text,
        },
        row_decoding::Cells,
    },
};

/// `(id, displayType, dataType, maxItems)` of a field definition.
pub type Definition = (FieldId, String, String, Option<i64>);

/// The most contact fields of a store, and the most active contact fields.
const CONTACT_FIELDS: i64 = 100;
const ACTIVE_CONTACT_FIELDS: i64 = 20;

impl Import {
    /// Returns the stored definitions of ticket fields or of contact fields, whichever `kind` names.
    pub async fn definitions(&self, kind: RecordKind) -> Result<Vec<Definition>> {
        let sql = format!("SELECT id, display_type, data_type, max_items FROM {} WHERE store_id = ?", crate::store::import::table(kind));
        self.rows(&sql, [self.store.as_str().into()], |cells| Ok((cells.take()?, cells.take()?, cells.take()?, cells.take()?))).await
    }

    /// Returns the first of these accounts that the store does not have.
    pub async fn missing_account(&self, ids: &[AccountId]) -> Result<Option<AccountId>> {
        let Bulk { sql, runs } = bulk_statements::table(self.way.backend(), ids.iter().map(|id| vec![id.as_str().into()]).collect());
        let sql =
            format!("SELECT v.column1 FROM {sql} LEFT JOIN accounts a ON a.id = v.column1 AND a.store_id = ? WHERE a.id IS NULL LIMIT 1");
        let missing = self.way.all(&sql, &[], runs, &[self.store.as_str().into()], |cells| cells.take()).await?;
        Ok(missing.into_iter().next())
    }

    /// Returns a fault for each missing record that imported records refer to; at most `MAX_FAULTS` faults.
    pub(super) async fn missing(&self) -> Result<Vec<ImportFault>> {
        let mut faults = Vec::new();
        for (kinds, property, missing, sql) in [
            (
                &[RecordKind::Message, RecordKind::Ticket, RecordKind::Comment][..],
                "conversationId",
                "conversation",
                "SELECT t.id FROM import_touched t LEFT JOIN conversations c ON c.store_id = ? AND c.id = t.id WHERE c.id IS NULL",
            ),
            (
                &[RecordKind::Conversation],
                "contactId",
                "contact",
                "SELECT DISTINCT c.contact_id FROM import_touched t JOIN conversations c ON c.store_id = ? AND c.id = t.id \
                 LEFT JOIN contacts p ON p.store_id = c.store_id AND p.id = c.contact_id WHERE p.id IS NULL",
            ),
            (
                &[RecordKind::Conversation],
                "accountId",
                "account",
                "SELECT DISTINCT c.account_id FROM import_touched t JOIN conversations c ON c.store_id = ? AND c.id = t.id \
                 LEFT JOIN accounts a ON a.store_id = c.store_id AND a.id = c.account_id WHERE a.id IS NULL",
            ),
            (
                &[RecordKind::Template],
                "accountId",
                "account",
                "SELECT DISTINCT t.account_id FROM templates t LEFT JOIN accounts a ON a.store_id = t.store_id AND a.id = t.account_id \
                 WHERE t.store_id = ? AND a.id IS NULL",
            ),
        ] {
            let sql = format!("{sql} LIMIT {MAX_FAULTS}");
            faults.extend(self.rows(&sql, [self.store.as_str().into()], text).await?.into_iter().map(|value| {
                let reason = format!("there is no {missing} `{value}`, neither in the file nor in the store");
                ImportFault { at: At::Where { kinds, property, value }, property, reason }
            }));
        }
        faults.truncate(MAX_FAULTS);
        Ok(faults)
    }

    /// Tests that values which imported records copy from other records agree with those records, that templates belong to WhatsApp
    /// accounts, and that the store has no more contact fields than allowed. `Import::complete_tickets` must have run before.
    pub(super) async fn check_copied_values(&self) -> ImportResult {
        let store = || [self.store.as_str().into()];
        let whole_store = self.accounts_came && self.had_records(RecordKind::Conversation);
        let scope = if whole_store { "" } else { " AND c.id IN (SELECT id FROM import_touched)" };
        let sql = format!(
            "SELECT c.id, c.channel, a.channel, a.id FROM conversations c JOIN accounts a ON a.store_id = c.store_id AND a.id = c.account_id \
             WHERE c.store_id = ? AND c.channel <> a.channel{scope} LIMIT 1"
        );
        if let Some([id, own, channel, account]) = self.first(&sql, store(), texts).await? {
            let reason = format!("is `{own}` where its account `{account}` is of channel `{channel}`");
            return Err(at_id(RecordKind::Conversation, id, "channel", reason).into());
        }
        let sql = "SELECT t.id, a.channel, a.id FROM templates t JOIN accounts a ON a.store_id = t.store_id AND a.id = t.account_id \
                   WHERE t.store_id = ? AND a.channel <> 'whatsapp' LIMIT 1";
        if let Some([id, channel, account]) = self.first(sql, store(), texts).await? {
            let reason = format!("`{account}` is an account of channel `{channel}`; templates belong to whatsapp accounts");
            return Err(at_id(RecordKind::Template, id, "accountId", reason).into());
        }
        for (property, column) in [("channel", "channel"), ("accountId", "account_id"), ("contactId", "contact_id")] {
            let sql = format!(
                "SELECT t.id, t.{column}, c.{column}, c.id FROM import_tickets i JOIN tickets t ON t.store_id = ? AND t.id = i.id \
                 JOIN conversations c ON c.store_id = t.store_id AND c.id = t.conversation_id WHERE t.{column} <> c.{column} LIMIT 1"
            );
            if let Some([id, own, value, conversation]) = self.first(&sql, store(), texts).await? {
                let reason = format!("is `{own}` where its conversation `{conversation}` has `{value}`");
                return Err(at_id(RecordKind::Ticket, id, property, reason).into());
            }
        }
        let sql = "SELECT COUNT(*), COUNT(CASE WHEN active THEN 1 END) FROM contact_fields WHERE store_id = ?";
        let counts = self.first(sql, store(), |cells| Ok((cells.take::<i64>()?, cells.take::<i64>()?))).await?;
        if let Some((all, active)) = counts
            && (all > CONTACT_FIELDS || active > ACTIVE_CONTACT_FIELDS)
        {
            let reason = format!(
                "the store would have {all} contact fields, {active} of them active; {CONTACT_FIELDS} and {ACTIVE_CONTACT_FIELDS} are allowed"
            );
            let at = At::Where { kinds: &[], property: "", value: String::new() };
            return Err(ImportFault { at, property: "contactField", reason }.into());
        }
        Ok(())
    }
}

/// Decodes `N` text columns that are never NULL in the query.
pub(super) fn texts<const N: usize>(cells: &mut Cells<'_>) -> Result<[String; N]> {
    let mut texts = [const { String::new() }; N];
    for cell in &mut texts {
        *cell = cells.take()?;
    }
    Ok(texts)
}

/// Returns a fault that is located by the kind and the id of a record. The record is a template, a ticket or a message; for any other kind,
/// `id` is the id of a conversation.
pub(super) fn at_id(kind: RecordKind, id: String, property: &'static str, reason: String) -> ImportFault {
    let kinds = match kind {
        RecordKind::Template => &[RecordKind::Template][..],
        RecordKind::Ticket => &[RecordKind::Ticket],
        RecordKind::Message => &[RecordKind::Message],
        _ => &[RecordKind::Conversation],
    };
    ImportFault { at: At::Where { kinds, property: "id", value: id }, property, reason }
}

//! The rows that writes read and change, each within [`Write`].

use super::{
    Result,
    import::DERIVE_TICKETS,
    marks::{Marks, ValueMarks},
    sql::{Row, Sql},
    write::Write,
};
use crate::domain::{
    contacts::Contact,
    conversations::Conversation,
    fields::{Comparable, Field},
    ids::{AccountId, ContactId, ConversationId, FieldId, LabelId, TicketId, UserId},
    messages::Comment,
    store::Account,
    tickets::Ticket,
};

impl Write {
    /// An account, held until the end of the transaction: of two who change what belongs to it the second finds what the first
    /// did.
    pub async fn held_account(&self, id: &AccountId) -> Result<Option<Account>> {
        self.held("accounts", id.as_str()).await
    }

    pub async fn ticket(&self, id: &TicketId) -> Result<Option<Ticket>> {
        self.held("tickets", id.as_str()).await
    }

    /// The tickets among `ids`, held in the order of their ids, so that two writers cannot wait for each other.
    pub async fn tickets(&self, ids: &[&TicketId]) -> Result<Vec<Ticket>> {
        let mut sql = self.sql("SELECT ");
        sql.push(Ticket::COLUMNS)
            .push(" FROM tickets WHERE store_id = $1 AND id IN ")
            .texts(ids.iter().map(|id| id.as_str()))
            .push(" ORDER BY id");
        self.hold(&mut sql);
        self.all(sql, Ticket::decode).await
    }

    /// Writes the properties of a ticket that writes change. A closed one waits for no reply.
    pub async fn save_ticket(&self, ticket: &Ticket) -> Result<()> {
        let mut sql = self.sql("UPDATE tickets SET is_open = ");
        sql.push(if ticket.is_open { "TRUE" } else { "FALSE, waiting_since = NULL" });
        for (column, at) in
            [(", closed_at = ", ticket.closed_at), (", reopened_at = ", ticket.reopened_at), (", snoozed_until = ", ticket.snoozed_until)]
        {
            sql.push(column).optional_integer(at.map(|at| at.millis()));
        }
        sql.push(", assignee_user_id = ").optional_text(ticket.assignee_user_id.as_ref().map(UserId::as_str));
        sql.push(", handled_by = ").optional_text(ticket.handled_by.as_ref().map(UserId::as_str));
        sql.push(", ticket_fields = ").text(&ticket.fields);
        sql.push(", ticket_fields_updated_at = ").optional_integer(ticket.fields_updated_at.map(|at| at.millis()));
        sql.push(", updated_at = ").integer(ticket.updated_at.millis());
        sql.push(" WHERE store_id = $1 AND id = ").text(ticket.id.as_str());
        self.run(sql).await?;
        if ticket.closed_at.is_some_and(|closed_at| closed_at < ticket.sort_at) {
            // Its newest message is dated behind its end, which leaves it outside of the ticket's window.
            let mut sql = self.sql(DERIVE_TICKETS);
            sql.push(" WHERE store_id = $1 AND id = ").text(ticket.id.as_str());
            self.run(sql).await?;
        }
        Ok(())
    }

    /// Keeps the tickets of this one's conversation from being changed by others, itself too.
    pub async fn hold_tickets_beside(&self, id: &TicketId) -> Result<()> {
        self.hold_tickets(|sql| {
            sql.push("(SELECT t.conversation_id FROM tickets t WHERE t.store_id = $1 AND t.id = ").text(id.as_str()).push(")");
        })
        .await
    }

    /// Derives what follows for the ticket whose window begins where this one, which was closed just now, ends. There is one only where
    /// an import brought an older ticket that was still open. Both are held.
    pub async fn derive_ticket_after(&self, ticket: &Ticket) -> Result<()> {
        let mut sql = self.sql(DERIVE_TICKETS);
        sql.push(" WHERE store_id = $1 AND id = (SELECT n.id FROM tickets n WHERE n.store_id = $1 AND n.conversation_id = ");
        sql.text(ticket.conversation_id.as_str()).push(" AND (n.opened_at, n.id) > (").integer(ticket.opened_at.millis());
        sql.push(", ").text(ticket.id.as_str()).push(") ORDER BY n.opened_at, n.id LIMIT 1)");
        self.run(sql).await?;
        Ok(())
    }

    /// Replaces what the filters compare of some fields of a ticket, which is held.
    pub async fn save_field_values(&self, ticket: &TicketId, fields: &[(FieldId, Vec<Comparable>)]) -> Result<()> {
        for (field, values) in fields {
            self.save_values_of(ticket, field, values).await?;
        }
        let marks: ValueMarks = fields.iter().map(|(field, values)| ValueMarks::of(field, values)).collect();
        if marks == ValueMarks::default() {
            return Ok(());
        }
        // What other fields have stays, and so does what these had: it may be another's, too.
        let [fields, texts] = [marks.field_marks.bits(), marks.text_marks.bits()];
        let mut sql = self.sql("UPDATE tickets SET field_marks = field_marks | ");
        sql.integer(fields).push(", text_marks = text_marks | ").integer(texts);
        sql.push(" WHERE store_id = $1 AND id = ").text(ticket.as_str());
        sql.push(" AND ((field_marks & ").integer(fields).push(") <> ").integer(fields);
        sql.push(" OR (text_marks & ").integer(texts).push(") <> ").integer(texts).push(")");
        self.run(sql).await?;
        Ok(())
    }

    async fn save_values_of(&self, ticket: &TicketId, field: &FieldId, values: &[Comparable]) -> Result<()> {
        let mut sql = self.sql("DELETE FROM ticket_field_values WHERE store_id = $1 AND ticket_id = ");
        sql.text(ticket.as_str()).push(" AND field_id = ").text(field.as_str());
        self.run(sql).await?;
        for (position, value) in (0_i64..).zip(values) {
            let (text, number) = match value {
                Comparable::Text(text) => (Some(text.as_str()), None),
                Comparable::Number(number) => (None, Some(*number)),
            };
            let mut sql = self.sql(
                "INSERT INTO ticket_field_values (store_id, ticket_id, field_id, position, text_value, number_value, folded) VALUES ($1, ",
            );
            sql.text(ticket.as_str()).push(", ").text(field.as_str()).push(", ").integer(position).push(", ").optional_text(text);
            sql.push(", ").optional_number(number).push(", ").optional_text(value.folded().as_deref()).push(")");
            self.run(sql).await?;
        }
        Ok(())
    }

    pub async fn ticket_field(&self, id: &FieldId) -> Result<Option<Field>> {
        self.definition("ticket_fields", id).await
    }

    pub async fn contact_field(&self, id: &FieldId) -> Result<Option<Field>> {
        self.definition("contact_fields", id).await
    }

    async fn definition(&self, table: &str, id: &FieldId) -> Result<Option<Field>> {
        let mut sql = self.sql("SELECT ");
        sql.push(Field::COLUMNS).push(" FROM ").push(table).push(" WHERE store_id = $1 AND id = ").text(id.as_str());
        self.first(sql, Field::decode).await
    }

    /// The store's currency.
    pub async fn currency(&self) -> Result<Option<String>> {
        self.first(self.sql("SELECT currency FROM stores WHERE id = $1"), |cells| cells.take()).await
    }

    /// Which of these are users of the store.
    pub async fn known_users(&self, ids: &[&UserId]) -> Result<Vec<UserId>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut sql = self.sql("SELECT user_id FROM users WHERE store_id = $1 AND user_id IN ");
        sql.texts(ids.iter().map(|id| id.as_str())).push(" ORDER BY id");
        self.share(&mut sql);
        self.all(sql, |cells| cells.id()).await
    }

    /// Keeps the accounts of these tickets as they are, with whom they list. Before the tickets are held: who takes access
    /// away holds the account first and the tickets then.
    pub async fn keep_accounts_of(&self, tickets: &[&TicketId]) -> Result<()> {
        let mut sql = self.sql(
            "SELECT a.id FROM accounts a WHERE a.store_id = $1 AND a.id IN (SELECT t.account_id FROM tickets t WHERE t.store_id = $1 AND t.id IN ",
        );
        sql.texts(tickets.iter().map(|id| id.as_str())).push(") ORDER BY a.id");
        self.share(&mut sql);
        // One writer keeps them anyway.
        if sql.holds() {
            self.all(sql, |cells| cells.id::<AccountId>()).await?;
        }
        Ok(())
    }

    /// The owner of the store who has been one the longest.
    pub async fn oldest_owner(&self) -> Result<Option<UserId>> {
        let sql = self.sql(
            "SELECT u.user_id FROM users u JOIN roles r ON r.store_id = u.store_id AND r.id = u.role_id \
             WHERE u.store_id = $1 AND r.kind = 'owner' AND u.user_id IS NOT NULL ORDER BY u.created_at, u.id LIMIT 1",
        );
        self.first(sql, |cells| cells.id()).await
    }

    /// The users that each of these accounts lists; an account that lists none is open to all.
    pub async fn account_users(&self, accounts: &[&AccountId]) -> Result<Vec<(AccountId, UserId)>> {
        let mut sql = self.sql("SELECT account_id, user_id FROM account_users WHERE store_id = $1 AND account_id IN ");
        sql.texts(accounts.iter().map(|id| id.as_str()));
        self.all(sql, |cells| Ok((cells.id()?, cells.id()?))).await
    }

    pub async fn has_open_ticket(&self, id: &ConversationId) -> Result<bool> {
        let mut sql = self.sql("SELECT 1 FROM tickets WHERE store_id = $1 AND is_open = TRUE AND conversation_id = ");
        sql.text(id.as_str());
        Ok(self.first(sql, |cells| cells.take::<i32>()).await?.is_some())
    }

    /// Writes the unread count and stamp of a conversation.
    pub async fn save_unread_count(&self, conversation: &Conversation) -> Result<()> {
        let mut sql = self.sql("UPDATE conversations SET unread_count = ");
        sql.integer(conversation.unread_count).push(", updated_at = ").integer(conversation.updated_at.millis());
        sql.push(" WHERE store_id = $1 AND id = ").text(conversation.id.as_str());
        self.run(sql).await?;
        Ok(())
    }

    /// Keeps the tickets of a conversation, which is held, from being changed by others.
    pub async fn hold_tickets_of(&self, conversation: &ConversationId) -> Result<()> {
        self.hold_tickets(|sql| _ = sql.text(conversation.as_str())).await
    }

    /// In the order in which every writer holds them.
    async fn hold_tickets(&self, push_conversation: impl FnOnce(&mut Sql)) -> Result<()> {
        let mut sql = self.sql("SELECT id FROM tickets WHERE store_id = $1 AND conversation_id = ");
        push_conversation(&mut sql);
        sql.push(" ORDER BY id");
        self.hold(&mut sql);
        // SQLite's one writer holds them anyway.
        if sql.holds() {
            self.all(sql, |cells| cells.id::<TicketId>()).await?;
        }
        Ok(())
    }

    /// Writes the labels and stamp of a conversation whose tickets are held, and its marks there and on them.
    pub async fn save_labels(&self, conversation: &Conversation) -> Result<()> {
        let labels = serde_json::to_string(&conversation.label_ids).map_err(|error| super::Error::Damaged(error.to_string()))?;
        let marks = Marks::of_labels(&conversation.label_ids).bits();
        let mut sql = self.sql("UPDATE conversations SET label_ids = ");
        sql.text(&labels).push(", label_marks = ").integer(marks);
        sql.push(", updated_at = ").integer(conversation.updated_at.millis());
        sql.push(" WHERE store_id = $1 AND id = ").text(conversation.id.as_str());
        self.run(sql).await?;
        let mut sql = self.sql("UPDATE tickets SET label_marks = ");
        sql.integer(marks).push(" WHERE store_id = $1 AND conversation_id = ").text(conversation.id.as_str());
        sql.push(" AND label_marks <> ").integer(marks);
        self.run(sql).await?;
        Ok(())
    }

    pub async fn add_label(&self, conversation: &ConversationId, label: &LabelId) -> Result<()> {
        let mut sql = self.sql("INSERT INTO conversation_labels (store_id, conversation_id, label_id) VALUES ($1, ");
        sql.text(conversation.as_str()).push(", ").text(label.as_str()).push(")");
        self.run(sql).await?;
        Ok(())
    }

    pub async fn remove_label(&self, conversation: &ConversationId, label: &LabelId) -> Result<()> {
        let mut sql = self.sql("DELETE FROM conversation_labels WHERE store_id = $1 AND conversation_id = ");
        sql.text(conversation.as_str()).push(" AND label_id = ").text(label.as_str());
        self.run(sql).await?;
        Ok(())
    }

    /// The texts of the labels among `ids` that the store has.
    pub async fn label_texts(&self, ids: &[&LabelId]) -> Result<Vec<(LabelId, String)>> {
        if ids.is_empty() {
            return Ok(vec![]);
        }
        let mut sql = self.sql("SELECT id, label FROM labels WHERE store_id = $1 AND id IN ");
        sql.texts(ids.iter().map(|id| id.as_str()));
        self.all(sql, |cells| Ok((cells.id()?, cells.take()?))).await
    }

    pub async fn contact(&self, id: &ContactId) -> Result<Option<Contact>> {
        self.held("contacts", id.as_str()).await
    }

    pub async fn insert_contact(&self, contact: &Contact) -> Result<()> {
        let email_key = contact.email.as_deref().map(str::to_lowercase);
        let mut sql = self.sql(
            "INSERT INTO contacts (store_id, id, full_name, first_name, last_name, email, email_key, phone, created_at, updated_at) VALUES ($1, ",
        );
        sql.text(contact.id.as_str()).push(", ").text(&contact.full_name).push(", ").text(&contact.first_name);
        for text in [contact.last_name.as_deref(), contact.email.as_deref(), email_key.as_deref(), contact.phone.as_deref()] {
            sql.push(", ").optional_text(text);
        }
        sql.push(", ").integer(contact.created_at.millis()).push(", ").integer(contact.updated_at.millis()).push(")");
        self.run(sql).await?;
        Ok(())
    }

    /// Writes a contact's custom fields and stamps.
    pub async fn save_contact(&self, contact: &Contact) -> Result<()> {
        let mut sql = self.sql("UPDATE contacts SET custom_fields = ");
        sql.optional_text(contact.custom_fields.as_deref());
        sql.push(", custom_fields_updated_at = ").optional_integer(contact.custom_fields_updated_at.map(|at| at.millis()));
        sql.push(", updated_at = ").integer(contact.updated_at.millis());
        sql.push(" WHERE store_id = $1 AND id = ").text(contact.id.as_str());
        self.run(sql).await?;
        Ok(())
    }

    pub async fn insert_comment(&self, comment: &Comment) -> Result<()> {
        let mut sql = self
            .sql("INSERT INTO comments (store_id, id, conversation_id, text, created_by, sent_at, created_at, updated_at) VALUES ($1, ");
        sql.text(comment.id.as_str()).push(", ").text(comment.conversation_id.as_str()).push(", ").text(&comment.text);
        sql.push(", ").text(comment.created_by.as_str());
        for at in [comment.sent_at, comment.created_at, comment.updated_at] {
            sql.push(", ").integer(at.millis());
        }
        sql.push(")");
        self.run(sql).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use sea_orm::DbBackend;
    use tokio::time::{sleep, timeout};

    use super::*;
    use crate::{
        domain::clock::{Clock, SystemClock},
        store::fixture::Fixture,
    };

    /// The one looks for the conversation at its commit, with the ticket in hand; the other waits for the ticket, with the
    /// conversation.
    #[tokio::test]
    async fn who_changes_a_ticket_and_who_changes_its_conversation_do_not_wait_for_each_other() {
        let fixture = Fixture::alone().await;
        if fixture.db.backend() != DbBackend::Postgres {
            return;
        }
        fixture.ticket("t", |_| {}).await;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let begin = || fixture.db.write(&fixture.store, &clock);
        let (fields, labels) = (begin().await.unwrap(), begin().await.unwrap());

        let ticket = fields.ticket(&"t".into()).await.unwrap().unwrap();
        fields.save_field_values(&ticket.id, &[("size".into(), vec![Comparable::Text("L".to_owned())])]).await.unwrap();
        fields.save_ticket(&ticket).await.unwrap();

        let conversation = labels.conversation(&ticket.conversation_id).await.unwrap().unwrap();
        let waits = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let ended = async {
            while fixture.db.first(Sql::fixed(waits), |cells| cells.take::<i32>()).await.unwrap().is_none() {
                sleep(Duration::from_millis(5)).await;
            }
            fields.commit().await
        };
        let both = async { tokio::join!(labels.hold_tickets_of(&conversation.id), ended) };
        let (held, ended) = timeout(Duration::from_secs(60), both).await.unwrap();
        ended.unwrap();
        held.unwrap();
        labels.commit().await.unwrap();
    }
}

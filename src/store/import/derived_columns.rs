//! Derived columns: at the end of an import, recomputes the columns whose values depend on several records, for the conversations that the
//! import touched. An import touches each conversation that it writes. When it writes a ticket, message or comment, it touches the record's
//! conversation and, if it replaces the record, the conversation to which the record belonged before.
//!
//! Two statements here read a temporary table in the order of its ids, one chunk after the other. They join another table by `CROSS JOIN`:
//! SQLite then reads the tables in the given order, and need not read and sort all remaining rows for each chunk. Both tables' ids are
//! bounded by the beginning of the chunk (`t.id > ? AND c.id > ?`): PostgreSQL would otherwise read the joined table from its first row.

use std::sync::LazyLock;

use sea_orm::{DbBackend, Value};

use crate::{
    domain::{conversations::SNIPPET_CHARS, ndjson_records::RecordKind, unicode_text::snippet},
    store::{
        Result,
        import::{
            Import, ImportFailure, ImportResult, PLACEHOLDER_PREFIX,
            bulk_statements::{self, Bulk},
            consistency_checks::{at_id, texts},
            deferred_indexes::READ,
        },
        row_decoding::Cells,
    },
};

/// The number of conversations whose columns one statement derives. The texts of their newest messages are in memory at that time.
const CHUNK: usize = 500;

/// The counter that numbers a store's tickets.
const TICKET_NUMBER: &str = "ticket_number";

/// The largest imported ticket number to which the sequence of ticket numbers is advanced. Larger decimal numbers are stored, but do not
/// advance the sequence, since it would soon overflow.
const MAX_COUNTED: i64 = 1 << 53;

/// The SQL of [`derive_tickets`] for a transaction of one store, whose id is bound to `$1`.
pub static DERIVE_TICKETS: LazyLock<String> = LazyLock::new(|| derive_tickets("$1"));

/// Returns the SQL that sets the columns of tickets that follow from their messages. The caller adds the condition that selects the
/// tickets. `store` is SQL for the id of the store: a bound value, so that a distributed database (Citus) runs the subqueries on the node
/// of the store, or `tickets.store_id`.
pub fn derive_tickets(store: &str) -> String {
    let of_ticket = format!("m.store_id = {store} AND m.conversation_id = tickets.conversation_id");
    // The time at which the previous ticket of the conversation closed. The messages after this time belong to the ticket that is updated.
    let window_from = format!(
        "COALESCE((SELECT p.closed_at FROM tickets p WHERE p.store_id = {store} \
         AND p.conversation_id = tickets.conversation_id AND (p.opened_at, p.id) < (tickets.opened_at, tickets.id) \
         ORDER BY p.opened_at DESC, p.id DESC LIMIT 1), -9223372036854775807)"
    );
    format!(
        "UPDATE tickets SET sort_at = COALESCE((SELECT m.sent_at FROM messages m WHERE {of_ticket} AND m.sent_at > {window_from} \
         AND m.sent_at <= COALESCE(tickets.closed_at, 9223372036854775807) ORDER BY m.sent_at DESC, m.id DESC LIMIT 1), opened_at), \
         waiting_since = CASE WHEN is_open THEN (SELECT MIN(m.sent_at) FROM messages m WHERE {of_ticket} \
         AND m.inbound = TRUE AND m.sent_at > COALESCE((SELECT MAX(m.sent_at) FROM messages m WHERE {of_ticket} \
         AND m.inbound = FALSE AND (m.kind IS NULL OR m.kind <> 'auto_response') AND m.sent_at > {window_from}), {window_from})) END"
    )
}

impl Import {
    /// Ends the import: completes tickets, runs the consistency checks, numbers tickets and sets derived columns. Fails if there
    /// are faults in the records.
    pub async fn finish(&mut self) -> ImportResult {
        if self.way.backend() == DbBackend::Postgres {
            // PostgreSQL has no statistics on the rows that this transaction wrote. Without statistics it may plan a join as if the tables
            // had only a handful of rows.
            let counted = "import_touched, import_tickets, accounts, contacts, conversations, conversation_labels, tickets, \
                           ticket_field_values, messages";
            self.run(&format!("ANALYZE {counted}"), []).await?;
        }
        self.build(|name| READ.contains(&name)).await?;
        self.complete_tickets().await?;
        let missing = self.missing().await?;
        if !missing.is_empty() {
            return Err(ImportFailure::Faults(missing));
        }
        self.check_copied_values().await?;
        self.number_tickets().await?;
        self.realign_messages().await?;
        self.derive_conversations().await?;
        self.derive_tickets().await?;
        self.build(|_| true).await?;
        Ok(())
    }

    /// Sets the channel, account and contact of an imported ticket to those of its conversation, if the ticket leaves them empty. A ticket
    /// that is not in the import, but belongs to a touched conversation, always gets those of its conversation.
    async fn complete_tickets(&self) -> Result<()> {
        let sql = "UPDATE tickets SET \
             channel = CASE WHEN tickets.channel = '' THEN c.channel ELSE tickets.channel END, \
             account_id = CASE WHEN tickets.account_id = '' THEN c.account_id ELSE tickets.account_id END, \
             contact_id = CASE WHEN tickets.contact_id = '' THEN c.contact_id ELSE tickets.contact_id END \
             FROM conversations c, (SELECT id FROM import_tickets) i \
             WHERE tickets.store_id = ? AND tickets.id = i.id AND c.store_id = tickets.store_id AND c.id = tickets.conversation_id \
             AND (tickets.channel = '' OR tickets.account_id = '' OR tickets.contact_id = '')";
        self.run(sql, [self.store.as_str().into()]).await?;
        if !self.had_records(RecordKind::Ticket) || !self.had_records(RecordKind::Conversation) {
            return Ok(());
        }
        // PostgreSQL is slow with `NOT IN` if the import has many tickets. Citus does not support this `NOT EXISTS`.
        let not_imported = if self.is_distributed {
            "tickets.id NOT IN (SELECT id FROM import_tickets WHERE line IS NOT NULL)"
        } else {
            "NOT EXISTS (SELECT 1 FROM import_tickets i WHERE i.id = tickets.id AND i.line IS NOT NULL)"
        };
        let sql = format!(
            "UPDATE tickets SET channel = c.channel, account_id = c.account_id, contact_id = c.contact_id \
             FROM conversations c, (SELECT id FROM import_touched) t \
             WHERE tickets.store_id = ? AND tickets.conversation_id = t.id AND c.store_id = tickets.store_id AND c.id = t.id \
             AND (tickets.channel <> c.channel OR tickets.account_id <> c.account_id OR tickets.contact_id <> c.contact_id) \
             AND {not_imported}"
        );
        self.run(&sql, [self.store.as_str().into()]).await
    }

    /// Advances the sequence of ticket numbers to the highest imported number. Then numbers the imported tickets whose records state no
    /// number: a ticket that had a number before the import keeps it, and the other tickets get the next numbers in the order of lines. If
    /// a record of the file states a number that another ticket would keep, that is a fault.
    async fn number_tickets(&self) -> ImportResult {
        let store = || Value::from(self.store.as_str());
        let former = "SELECT i.id, i.former, t.id FROM import_tickets i JOIN tickets own ON own.store_id = ? AND own.id = i.id \
             JOIN tickets t ON t.store_id = own.store_id AND t.ticket_number = i.former AND t.id <> i.id \
             WHERE i.former IS NOT NULL AND own.ticket_number = ? || i.id LIMIT 1";
        if let Some([id, number, other]) = self.first(former, [store(), PLACEHOLDER_PREFIX.into()], texts).await? {
            let reason = format!("was `{number}`, which the file gives to the ticket `{other}`");
            return Err(at_id(RecordKind::Ticket, id, "ticketNumber", reason).into());
        }
        let keep = "UPDATE tickets SET ticket_number = i.former FROM (SELECT id, former FROM import_tickets) i \
             WHERE tickets.store_id = ? AND tickets.id = i.id AND i.former IS NOT NULL AND tickets.ticket_number = ? || i.id";
        self.run(keep, [store(), PLACEHOLDER_PREFIX.into()]).await?;

        let mut highest = 0;
        let mut after = String::new();
        loop {
            let sql = "SELECT i.id, t.ticket_number FROM import_tickets i CROSS JOIN tickets t WHERE t.store_id = ? AND t.id = i.id \
                       AND i.id > ? AND t.id > ? ORDER BY i.id LIMIT 10000";
            let numbers = self.rows(sql, [store(), after.as_str().into(), after.as_str().into()], texts).await?;
            highest = numbers.iter().filter_map(|[_, number]| counted(number)).max().unwrap_or(0).max(highest);
            let Some([last, _]) = numbers.into_iter().next_back() else { break };
            after = last;
        }
        let mut next = self.advance(highest).await?;
        self.run("CREATE INDEX import_tickets_by_line ON import_tickets (line)", []).await?;
        let mut line = 0;
        loop {
            // The lines are limited before the join: otherwise PostgreSQL joins and sorts all of them for each batch.
            let sql = "SELECT i.line, t.id FROM (SELECT line, id FROM import_tickets WHERE line > ? ORDER BY line LIMIT 5000) i \
                       LEFT JOIN tickets t ON t.store_id = ? AND t.id = i.id AND t.ticket_number = ? || i.id ORDER BY i.line";
            let lines: Vec<(i64, Option<String>)> =
                self.rows(sql, [line.into(), store(), PLACEHOLDER_PREFIX.into()], |cells| Ok((cells.take()?, cells.take()?))).await?;
            let Some((last, _)) = lines.last() else { break };
            line = *last;
            let numbered = lines.into_iter().filter_map(|(_, bare)| bare).map(|id| {
                next += 1;
                vec![next.to_string().into(), id.into()]
            });
            let numbered: Vec<_> = numbered.collect();
            if !numbered.is_empty() {
                let Bulk { sql, runs } = bulk_statements::update(self.way.backend(), "tickets", &["ticket_number"], numbered);
                self.way.run(&sql, &[], runs, &[store()]).await?;
            }
        }
        self.advance(next).await?;
        Ok(())
    }

    /// Advances the sequence of ticket numbers to at least `value` and returns its value.
    async fn advance(&self, value: i64) -> Result<i64> {
        let sql = "INSERT INTO counters (store_id, name, value) VALUES (?, ?, ?) ON CONFLICT (store_id, name) DO UPDATE \
             SET value = CASE WHEN excluded.value > counters.value THEN excluded.value ELSE counters.value END RETURNING value";
        let stands = self.first(sql, [self.store.as_str().into(), TICKET_NUMBER.into(), value.into()], |cells| cells.take()).await?;
        Ok(stands.unwrap_or(value))
    }

    /// Sets the account of messages to that of their conversation, if the import may have made the accounts differ (`realign`). It is a
    /// fault if two messages of one account would then have the same external id.
    async fn realign_messages(&self) -> ImportResult {
        if !self.realign {
            return Ok(());
        }
        let sql = "SELECT MAX(m.id), m.external_id, MIN(m.id) FROM messages m JOIN conversations c ON c.store_id = m.store_id AND c.id = m.conversation_id \
                   WHERE m.store_id = ? AND m.external_id IS NOT NULL GROUP BY c.account_id, m.external_id HAVING COUNT(*) > 1 LIMIT 1";
        if let Some([id, external, other]) = self.first(sql, [self.store.as_str().into()], texts).await? {
            let reason = format!("`{external}` belongs to the message `{other}` of the same account already");
            return Err(at_id(RecordKind::Message, id, "externalId", reason).into());
        }
        let sql = "UPDATE messages SET account_id = c.account_id FROM conversations c, (SELECT id FROM import_touched) t \
             WHERE messages.store_id = ? AND messages.conversation_id = t.id AND c.store_id = messages.store_id AND c.id = t.id \
             AND messages.account_id <> c.account_id";
        self.run(sql, [self.store.as_str().into()]).await?;
        Ok(())
    }

    async fn derive_conversations(&self) -> Result<()> {
        let (counted, counts) = match self.way.backend() {
            DbBackend::Postgres => {
                // Newly written rows cannot be counted by an index alone: the table has to be read. Reading it in its own order is faster
                // than reading it conversation by conversation.
                let sql = "INSERT INTO import_counts (id, messages) SELECT conversation_id, COUNT(*) FROM messages \
                           WHERE store_id = ? AND conversation_id IN (SELECT id FROM import_touched) GROUP BY conversation_id";
                self.run(sql, [self.store.as_str().into()]).await?;
                self.run("ANALYZE import_counts", []).await?;
                ("COALESCE(n.messages, 0)", "LEFT JOIN import_counts n ON n.id = t.id ")
            }
            _ => ("(SELECT COUNT(*) FROM messages m WHERE m.store_id = c.store_id AND m.conversation_id = c.id)", ""),
        };
        // The `LIMIT` is a literal: for a bound number, PostgreSQL would plan the statement anew at each execution.
        let sql = format!(
            "SELECT t.id, c.created_at, {counted}, \
             (SELECT m.sent_at FROM messages m WHERE m.store_id = c.store_id AND m.conversation_id = c.id AND m.inbound = TRUE \
              ORDER BY m.sent_at DESC, m.id DESC LIMIT 1), \
             l.sent_at, COALESCE(l.channel_sent_at, l.sent_at), l.inbound, l.text \
             FROM import_touched t CROSS JOIN conversations c {counts}\
             LEFT JOIN messages l ON l.store_id = c.store_id AND l.id = (SELECT m.id FROM messages m WHERE m.store_id = c.store_id \
              AND m.conversation_id = c.id ORDER BY m.sent_at DESC, m.id DESC LIMIT 1) \
             WHERE c.store_id = ? AND c.id = t.id AND t.id > ? AND c.id > ? ORDER BY t.id LIMIT {CHUNK}"
        );
        let mut after = String::new();
        loop {
            let rows = self.rows(&sql, [self.store.as_str().into(), after.as_str().into(), after.as_str().into()], derived).await?;
            let Some((last, _)) = rows.last() else { return Ok(()) };
            after.clone_from(last);
            let rows = rows.into_iter().map(|(id, columns)| columns.into_iter().chain([id.into()]).collect());
            let Bulk { sql, runs } = bulk_statements::update(self.way.backend(), "conversations", &DERIVED, rows.collect());
            self.way.run(&sql, &[], runs, &[self.store.as_str().into()]).await?;
        }
    }

    async fn derive_tickets(&self) -> Result<()> {
        let sql = format!(
            "{}, label_marks = (SELECT c.label_marks FROM conversations c WHERE c.store_id = tickets.store_id \
             AND c.id = tickets.conversation_id) WHERE store_id = ? AND conversation_id IN (SELECT id FROM import_touched)",
            derive_tickets("tickets.store_id")
        );
        self.run(&sql, [self.store.as_str().into()]).await
    }
}

/// The derived columns of a conversation.
const DERIVED: [&str; 6] =
    ["message_count", "last_inbound_at", "last_message_at", "last_message_inbound", "last_message_snippet", "sort_at"];

/// Decodes the id of a conversation, and its derived columns.
fn derived(cells: &mut Cells<'_>) -> Result<(String, [Value; 6])> {
    let (id, created_at): (String, i64) = (cells.take()?, cells.take()?);
    let (count, last_inbound): (i64, Option<i64>) = (cells.take()?, cells.take()?);
    let (sort_at, last_at): (Option<i64>, Option<i64>) = (cells.take()?, cells.take()?);
    let inbound: Option<bool> = cells.take()?;
    let newest: Option<String> = cells.take()?;
    let shown = last_at.map(|_| snippet(newest.as_deref().unwrap_or_default(), SNIPPET_CHARS));
    let columns = [count.into(), last_inbound.into(), last_at.into(), inbound.into(), shown.into(), sort_at.unwrap_or(created_at).into()];
    Ok((id, columns))
}

/// Returns the value of a ticket number if the sequence has to be advanced past it. `None`: the number is not decimal, or too large.
fn counted(number: &str) -> Option<i64> {
    let decimal = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if decimal { number.parse().ok().filter(|value| *value <= MAX_COUNTED) } else { None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        domain::{
            ids::TicketId,
            ndjson_records::{ImportedTicket, Line},
            time::Timestamp,
        },
        store::{fixture::Fixture, import::Batch},
    };

    /// Asserts that tickets with the same opening time are ordered by id. `Db::ticket_window`, which bounds a ticket's messages, uses this
    /// order, too.
    #[tokio::test]
    async fn tickets_opened_at_the_same_time_are_ordered_by_id() {
        let fixture = Fixture::new().await;
        let ticket = |number: u64, id: &str, closed: Option<&str>| {
            let mut record = json!({"id": id, "conversationId": "c0", "openedAt": "2026-01-01T00:00:00Z", "isOpen": closed.is_none()});
            if let Some(at) = closed {
                record["closedAt"] = at.into();
            }
            Line { number, record: ImportedTicket { ticket: serde_json::from_value(record).unwrap(), values: vec![] } }
        };
        let message = json!({"id": "m", "conversationId": "c0", "direction": "inbound", "sentAt": "2026-01-01T12:00:00Z"});
        let batch = Batch {
            tickets: vec![ticket(1, "k1", Some("2026-01-02T00:00:00Z")), ticket(2, "k2", None)],
            messages: vec![Line { number: 3, record: serde_json::from_value(message).unwrap() }],
            ..Batch::default()
        };
        let mut import = fixture.db.begin_import(&fixture.store, Timestamp::from_millis(1_800_000_000_000)).await.unwrap().unwrap();
        import.put(batch).await.unwrap();
        import.finish().await.unwrap();
        let sql = "SELECT id, sort_at, waiting_since FROM tickets WHERE store_id = ? ORDER BY id";
        let derived: Vec<(String, i64, Option<i64>)> =
            import.rows(sql, [fixture.store.as_str().into()], |cells| Ok((cells.take()?, cells.take()?, cells.take()?))).await.unwrap();
        import.commit(&fixture.db).await.unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap().millis();
        let (opened, sent) = (at("2026-01-01T00:00:00Z"), at("2026-01-01T12:00:00Z"));
        assert_eq!(derived, [("k1".to_owned(), sent, None), ("k2".to_owned(), opened, None)]);
        let window = fixture.db.ticket_window(&fixture.store, &TicketId::from("k2")).await.unwrap().unwrap();
        assert_eq!(window.after.map(Timestamp::millis), Some(at("2026-01-02T00:00:00Z")));
    }

    #[test]
    fn only_decimal_ticket_numbers_advance_the_sequence() {
        for (number, value) in [("7", Some(7)), ("0042", Some(42)), ("", None), ("A7", None), ("+7", None), ("99999999999999999999", None)]
        {
            assert_eq!(counted(number), value, "{number}");
        }
    }
}

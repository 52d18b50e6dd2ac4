//! A write that goes to PostgreSQL as one statement.
//!
//! A transaction is a round trip for its beginning, one for each row that is held, and one for its end, and each of them costs
//! both sides more than what is looked up or written there. A message to a conversation is the most frequent write and needs
//! little: it looks at the conversation without holding it, and then sends all that it writes as one statement, which commits
//! itself if the conversation is still the version that was seen, and its open ticket the one that was seen. Else it undoes
//! itself, the caller is told [`Error::Raced`], and does it in a transaction.
//!
//! Why nothing is lost without holding the conversation: what a message is decided by is in the row of the conversation, each
//! change of which is another version (`xmin`), or follows from its messages and tickets. Whoever inserts a message counts it
//! there; a ticket is opened by a message, or by an import, which derives the conversation anew; one that is closed meanwhile is
//! not found by the update that tells it of the answer, even if that had to wait. Whoever holds a conversation and changes nothing
//! of it is not noticed: the message may bear a time shortly before that one's.
//!
//! Called by `write`. Guarantees: all of it is written or nothing; a statement that may have been carried out is never
//! repeated, and one that is given up while it waits for a row may be carried out later, as a commit may; rows are taken as in a
//! transaction, the conversation before its ticket; a connection that had rested and is lost is found out by the look.

use std::sync::{Mutex, MutexGuard};

use scopeguard::{ScopeGuard, guard};
use tokio_postgres::error::SqlState;

use super::{Ordering, Write, lock};
use crate::{
    domain::{
        conversations::Conversation,
        ids::{ConversationId, TicketId},
    },
    store::{
        Error, Result,
        kept::{Kept, Lent},
        postgres::NOTHING,
        sql::{Cells, Row, Sql},
    },
};

/// What PostgreSQL fails to read as a number where something is not as it was seen: it has no plainer way to undo a statement.
const RACED: &str = "another write came first, this one is tried again";

pub(super) struct AtOnce {
    kept: Kept,
    seen: Mutex<Option<Seen>>,
}

/// A conversation that was looked at, and the connection over which.
struct Seen {
    lent: Lent,
    version: i64,
    ticket: Option<TicketId>,
    /// Which of the statements that wait write the conversation and its ticket.
    conversation_by: Option<usize>,
    ticket_by: Option<usize>,
}

impl AtOnce {
    pub fn new(kept: &Kept) -> Self {
        Self { kept: kept.clone(), seen: Mutex::default() }
    }

    fn seen(&self) -> MutexGuard<'_, Option<Seen>> {
        lock(&self.seen)
    }
}

impl Drop for AtOnce {
    fn drop(&mut self) {
        // Nothing goes on upon it: while something does, it is not here.
        if let Some(seen) = self.seen().take() {
            self.kept.put_back(seen.lent);
        }
    }
}

impl Write {
    /// The conversation, once, as it is; not held.
    pub(super) async fn look_at_conversation(&self, one: &AtOnce, id: &ConversationId) -> Result<Option<Conversation>> {
        if one.seen().is_some() {
            return Err(Error::Raced);
        }
        let mut sql = self.sql("SELECT ");
        sql.push(Conversation::COLUMNS).push(
            ", xmin::text::bigint, (SELECT t.id FROM tickets t WHERE t.store_id = $1 AND t.is_open = TRUE \
             AND t.conversation_id = conversations.id) FROM conversations WHERE store_id = $1 AND id = ",
        );
        sql.text(id.as_str());
        self.count_statement();
        let (lent, found) = one.kept.first(&sql, NOTHING).await?;
        let found = found.first().map(|row| {
            let cells = &mut Cells::postgres(row);
            Ok::<_, Error>((Conversation::decode(cells)?, cells.take::<i64>()?, cells.optional_id::<TicketId>()?))
        });
        // Behind the look: what was changed before is in it, and what is changed later leaves another version.
        self.now.store(self.clock.now().millis(), Ordering::Relaxed);
        match found.transpose() {
            Ok(Some((conversation, version, ticket))) => {
                *one.seen() = Some(Seen { lent, version, ticket, conversation_by: None, ticket_by: None });
                Ok(Some(conversation))
            }
            other => {
                one.kept.put_back(lent);
                other.map(|_| None)
            }
        }
    }

    /// Has an update of the conversation take part: it writes the version that was seen, or the whole is undone.
    pub(super) fn update_conversation_seen(&self, one: &AtOnce, mut update: Sql) -> Result<()> {
        let mut seen = one.seen();
        let seen = seen.as_mut().ok_or(Error::Raced)?;
        update.push(" AND xmin::text::bigint = ").integer(seen.version).push(" RETURNING id");
        seen.conversation_by = Some(self.take_along(update));
        Ok(())
    }

    /// Has an update of the open ticket take part: of the one that was seen, or, if there was none, of none; which that is.
    pub(super) fn update_ticket_seen(&self, one: &AtOnce, mut update: Sql) -> Result<Option<TicketId>> {
        let mut seen = one.seen();
        let seen = seen.as_mut().ok_or(Error::Raced)?;
        update.push(" RETURNING id");
        seen.ticket_by = Some(self.take_along(update));
        Ok(seen.ticket.clone())
    }

    /// Has a statement wait for the end; its number among those that do, from 1.
    fn take_along(&self, sql: Sql) -> usize {
        self.wrote.store(true, Ordering::Relaxed);
        let mut later = lock(&self.later);
        later.push(sql);
        later.len()
    }

    /// Writes what waits, and `log`, an insert that returns positions. This is the commit.
    pub(super) async fn write_at_once(&self, one: &AtOnce, log: Sql) -> Result<Vec<i64>> {
        let whole_is_seen = |seen: &mut Seen| seen.conversation_by.is_some();
        let Some(Seen { lent, ticket, conversation_by: Some(conversation), ticket_by, .. }) = one.seen().take_if(whole_is_seen) else {
            return Err(Error::Raced);
        };
        let mut whole = self.waiting();
        whole.push(log);
        // PostgreSQL carries a part out when it is asked for its rows: the log's first, which nobody else waits for, then what CASE
        // asks for in its order, then the others.
        let mut end = self.sql(&format!("SELECT position, CAST(CASE WHEN EXISTS (SELECT 1 FROM w{conversation})"));
        if let Some(by) = ticket_by {
            end.push(&format!(" AND (SELECT MIN(id) FROM w{by}) IS NOT DISTINCT FROM "))
                .optional_text(ticket.as_ref().map(TicketId::as_str));
        }
        end.push(&format!(" THEN '1' ELSE '{RACED}' END AS BIGINT) FROM w{}", whole.len()));
        whole.push(end);
        let Some(sql) = Sql::together(whole) else { return Ok(Vec::new()) };
        self.count_statement();
        // Nobody knows what became of a statement that is given up; its connection serves again when it has ended.
        let lent = guard(lent, |lent| one.kept.recover(lent, NOTHING));
        let outcome = lent.connection().rows(&sql).await;
        if outcome.as_ref().err().is_none_or(is_race) {
            one.kept.put_back(ScopeGuard::into_inner(lent));
        }
        match outcome {
            Ok(rows) => rows.iter().map(|row| Cells::postgres(row).take()).collect(),
            Err(error) if is_race(&error) => Err(Error::Raced),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether the statement refused itself, which leaves its connection as good as it was.
fn is_race(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_some_and(|error| *error.code() == SqlState::INVALID_TEXT_REPRESENTATION && error.message().contains(RACED))
}

#[cfg(test)]
mod tests;

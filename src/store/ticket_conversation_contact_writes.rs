//! Statements for requests that change tickets, conversations, contacts or comments. They run in a write transaction ([`Write`]).

use sea_orm::{
    ActiveModelTrait,
    ActiveValue::Set,
    ColumnTrait, Condition, EntityTrait, ExprTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
    sea_query::{Expr, Order},
};

use crate::{
    domain::{
        contacts::Contact,
        conversations::Conversation,
        custom_fields::Comparable,
        ids::{AccountId, ContactId, ConversationId, FieldId, LabelId, StoreId, TicketId, UserId},
        messages::Comment,
        settings_access::OWNER,
        stores_and_accounts::Account,
        tickets::Ticket,
        time::Timestamp,
    },
    store::{
        Result,
        entity::{
            account_users, accounts, contacts, conversation_labels, conversations, internal_comments, labels, stores, ticket_field_values,
            tickets, users,
        },
        import::DERIVE_TICKETS,
        parameterised_sql::Sql,
        row_decoding::{Row, StoredRecord},
        sql_from_entities::{FixedQuery, among, equals_parameter, model, records},
        stored_values::json,
        tickets::bloom_filters::{BloomBits, FieldBloomBits},
        transaction::store_transaction::Write,
        users_teams_labels::role_kind,
    },
};

/// The query for the id of the open ticket of a conversation. Its parameters are the ids of the store and of the conversation.
static OPEN_TICKET_ID: FixedQuery = FixedQuery::new(|| {
    use tickets::Column::{ConversationId, Id, IsOpen, StoreId};
    let query = tickets::Entity::find().select_only().column(Id).filter(equals_parameter(StoreId, 1));
    query.filter(equals_parameter(ConversationId, 2)).filter(IsOpen.eq(true)).into_query()
});

/// The columns of a ticket that [`Write::save_ticket`] does not write: those that no request changes after the ticket was inserted, and
/// `sort_at`, which `DERIVE_TICKETS` computes.
const NOT_SAVED: &[tickets::Column] = {
    use tickets::Column as C;
    &[
        C::TicketNumber,
        C::IsSpam,
        C::IsFollowUp,
        C::Channel,
        C::ContactId,
        C::AccountId,
        C::ConversationId,
        C::OpenedAt,
        C::SortAt,
        C::CreatedAt,
    ]
};

/// Returns the row with which [`Write::save_ticket`] updates a ticket.
fn saved_columns(ticket: &Ticket, store: &StoreId) -> tickets::ActiveModel {
    let mut row = ticket.row(store);
    NOT_SAVED.iter().for_each(|column| row.not_set(*column));
    if !ticket.is_open {
        row.waiting_since = Set(None);
    }
    row
}

impl Write {
    /// Reads an account and locks it until the end of the transaction. A transaction that sets the account's bridge (the HTTP endpoint that
    /// delivers its messages) or its allowed users locks the account first. So the later of two such transactions sees the changes of the
    /// earlier one.
    pub async fn locked_account(&self, id: &AccountId) -> Result<Option<Account>> {
        self.first_locked(self.by_id::<Account>(id.as_str())).await
    }

    /// Returns the statement that reads the record of the store with this id.
    pub(in crate::store) fn by_id<T: Row>(&self, id: &str) -> Sql {
        Sql::by_ids(self.backend(), self.store(), (T::columns(), T::table()), [id])
    }

    /// Reads a conversation and locks it until the end of the transaction.
    pub async fn conversation(&self, id: &ConversationId) -> Result<Option<Conversation>> {
        self.first_locked(self.by_id::<Conversation>(id.as_str())).await
    }

    /// Reads a conversation and its open ticket, and locks both until the end of the transaction. The ticket is read after the conversation
    /// is locked. A write that opens a ticket locks the conversation, and a write that closes a ticket locks the ticket. So the open ticket
    /// stays the same until the end of the transaction.
    pub async fn conversation_with_ticket(&self, id: &ConversationId) -> Result<Option<(Conversation, Option<TicketId>)>> {
        let ticket = OPEN_TICKET_ID.sql(self.store(), &[id.as_str()]);
        self.first_locked_with(self.by_id::<Conversation>(id.as_str()), ticket, |cells| cells.take()).await
    }

    /// Finds the open ticket of a conversation and locks it until the end of the transaction. The caller has locked the conversation.
    pub async fn open_ticket(&self, conversation: &ConversationId) -> Result<Option<TicketId>> {
        let query = OPEN_TICKET_ID.sql(self.store(), &[conversation.as_str()]);
        self.first(self.locking(query), |cells| cells.take()).await
    }

    pub async fn ticket(&self, id: &TicketId) -> Result<Option<Ticket>> {
        self.first_locked(self.by_id::<Ticket>(id.as_str())).await
    }

    /// Reads the tickets with these ids and locks them. They are locked in the order of their ids, which prevents deadlocks.
    pub async fn tickets(&self, ids: &[&TicketId]) -> Result<Vec<Ticket>> {
        use tickets::Column::{Id, StoreId};
        let mut query = records::<Ticket>();
        query.and_where(StoreId.eq(self.store())).and_where(among(Id, ids.iter().copied())).order_by(Id, Order::Asc);
        self.select_for_update(query, Ticket::decode).await
    }

    /// Stores the properties of a ticket that requests can change. Clears `waiting_since` if the ticket is closed.
    pub async fn save_ticket(&self, ticket: &Ticket) -> Result<()> {
        self.update(saved_columns(ticket, self.store())).await?;
        if ticket.closed_at.is_some_and(|closed_at| closed_at < ticket.sort_at) {
            // The ticket's newest message is dated after the ticket's close. So the message no longer belongs to the ticket, and the
            // ticket's sort position is computed again.
            self.derive_ticket(&ticket.id).await?;
        }
        Ok(())
    }

    /// Computes a ticket's `sort_at` and `waiting_since` again from its messages.
    pub(in crate::store) async fn derive_ticket(&self, id: &TicketId) -> Result<()> {
        let mut sql = self.sql(&DERIVE_TICKETS);
        sql.push(" WHERE store_id = $1 AND id = ").text(id.as_str());
        self.run(sql).await?;
        Ok(())
    }

    /// Locks all tickets of the conversation to which this ticket belongs, this ticket included, until the end of the transaction.
    pub async fn lock_conversation_tickets(&self, id: &TicketId) -> Result<()> {
        use tickets::Column::{ConversationId, Id, StoreId};
        let of_ticket = StoreId.eq(self.store()).and(Id.eq(id));
        let conversation = tickets::Entity::find().select_only().column(ConversationId).filter(of_ticket).into_query();
        self.lock_tickets(conversation.into()).await
    }

    /// Computes `sort_at` and `waiting_since` again for the ticket that was opened next after `ticket` in the same conversation. After
    /// `ticket` was closed, the messages of the next ticket begin where those of `ticket` end. Usually there is no next ticket, since only
    /// an import can create a ticket that was opened later than the conversation's open ticket. The caller has locked both tickets.
    pub async fn derive_ticket_after(&self, ticket: &Ticket) -> Result<()> {
        let mut sql = self.sql(&DERIVE_TICKETS);
        sql.push(" WHERE store_id = $1 AND id = (SELECT n.id FROM tickets n WHERE n.store_id = $1 AND n.conversation_id = ");
        sql.text(ticket.conversation_id.as_str()).push(" AND (n.opened_at, n.id) > (").integer(ticket.opened_at.millis());
        sql.push(", ").text(ticket.id.as_str()).push(") ORDER BY n.opened_at, n.id LIMIT 1)");
        self.run(sql).await?;
        Ok(())
    }

    /// Replaces the values of some fields of a ticket in `ticket_field_values`, and adds the values' Bloom filter bits to the ticket. A
    /// filter compares the values only if the bits show that they may match. The caller has locked the ticket.
    pub async fn save_field_values(&self, ticket: &TicketId, fields: &[(FieldId, Vec<Comparable>)]) -> Result<()> {
        for (field, values) in fields {
            self.save_values_of(ticket, field, values).await?;
        }
        let marks: FieldBloomBits = fields.iter().map(|(field, values)| FieldBloomBits::of(field, values)).collect();
        if marks == FieldBloomBits::default() {
            return Ok(());
        }
        // Adds Bloom filter bits and clears none: a bit of a former value may also belong to another field.
        let [fields, texts] = [marks.field_marks.bits(), marks.text_marks.bits()];
        let [field_marks, text_marks] = [tickets::Column::FieldMarks, tickets::Column::TextMarks].map(Expr::col);
        let lacks = |marks: &Expr, bits: i64| marks.clone().bit_and(bits).ne(bits);
        let marked = tickets::Entity::update_many()
            .filter(tickets::Column::StoreId.eq(self.store()))
            .filter(tickets::Column::Id.eq(ticket))
            .filter(lacks(&field_marks, fields).or(lacks(&text_marks, texts)))
            .col_expr(tickets::Column::FieldMarks, field_marks.bit_or(fields))
            .col_expr(tickets::Column::TextMarks, text_marks.bit_or(texts));
        self.execute(&marked).await?;
        Ok(())
    }

    async fn save_values_of(&self, ticket: &TicketId, field: &FieldId, values: &[Comparable]) -> Result<()> {
        let of_field = Condition::all()
            .add(ticket_field_values::Column::StoreId.eq(self.store()))
            .add(ticket_field_values::Column::TicketId.eq(ticket))
            .add(ticket_field_values::Column::FieldId.eq(field));
        self.execute(&ticket_field_values::Entity::delete_many().filter(of_field)).await?;
        for (position, value) in (0_i64..).zip(values) {
            let (text, number) = match value {
                Comparable::Text(text) => (Some(text.clone()), None),
                Comparable::Number(number) => (None, Some(*number)),
            };
            self.insert(ticket_field_values::ActiveModel {
                store_id: Set(self.store().to_string()),
                ticket_id: Set(ticket.to_string()),
                field_id: Set(field.to_string()),
                position: Set(position),
                text_value: Set(text),
                number_value: Set(number),
                folded: Set(value.folded()),
            })
            .await?;
        }
        Ok(())
    }

    /// Returns the store's currency.
    pub async fn currency(&self) -> Result<Option<String>> {
        let query = stores::Entity::find_by_id(self.store().as_str()).select_only().column(stores::Column::Currency);
        Ok(self.select(query, |cells| cells.take()).await?.pop())
    }

    /// Returns those of `ids` that are users of the store. Locks these users against changes until the end of the transaction.
    pub async fn known_users(&self, ids: &[&UserId]) -> Result<Vec<UserId>> {
        let query = users::Entity::find()
            .select_only()
            .column(users::Column::UserId)
            .filter(users::Column::StoreId.eq(self.store()))
            .filter(among(users::Column::UserId, ids.iter().copied()))
            .order_by_asc(users::Column::Id);
        self.select_shared(query, |cells| cells.take()).await
    }

    /// Locks the accounts of these tickets against changes, including changes of the users that an account lists as allowed. Must be called
    /// before the tickets are locked: a write that revokes a user's access locks the account first and then the tickets.
    pub async fn lock_accounts_shared(&self, tickets: &[&TicketId]) -> Result<()> {
        // Not needed on SQLite, which has one writer at a time.
        if !self.on_postgres() {
            return Ok(());
        }
        let of_tickets = tickets::Entity::find()
            .select_only()
            .column(tickets::Column::AccountId)
            .filter(tickets::Column::StoreId.eq(self.store()))
            .filter(among(tickets::Column::Id, tickets.iter().copied()));
        let query = accounts::Entity::find()
            .select_only()
            .column(accounts::Column::Id)
            .filter(accounts::Column::StoreId.eq(self.store()))
            .filter(accounts::Column::Id.in_subquery(of_tickets.into_query()))
            .order_by_asc(accounts::Column::Id);
        self.select_shared(query, |_| Ok(())).await?;
        Ok(())
    }

    /// Of the owners who have joined the store (who have a `userId`), returns the one whose row in `users` was created first.
    pub async fn oldest_owner(&self) -> Result<Option<UserId>> {
        let query = users::Entity::find()
            .select_only()
            .column(users::Column::UserId)
            .filter(users::Column::StoreId.eq(self.store()))
            .filter(users::Column::UserId.is_not_null())
            .filter(Expr::from(role_kind(Some(self.store()))).eq(OWNER))
            .order_by_asc(users::Column::CreatedAt)
            .order_by_asc(users::Column::Id)
            .limit(1);
        Ok(self.select(query, |cells| cells.take()).await?.pop())
    }

    /// Returns the users that each of these accounts lists as allowed. An account that lists no user is open to all users.
    pub async fn account_users(&self, accounts: &[&AccountId]) -> Result<Vec<(AccountId, UserId)>> {
        let query = account_users::Entity::find()
            .filter(account_users::Column::StoreId.eq(self.store()))
            .filter(among(account_users::Column::AccountId, accounts.iter().copied()));
        let rows = self.select(query, model::<account_users::Entity>).await?;
        Ok(rows.into_iter().map(|row| (row.account_id.into(), row.user_id.into())).collect())
    }

    pub async fn has_open_ticket(&self, id: &ConversationId) -> Result<bool> {
        Ok(self.first(OPEN_TICKET_ID.sql(self.store(), &[id.as_str()]), |_| Ok(())).await?.is_some())
    }

    /// Stores the unread count and the update time of a conversation.
    pub async fn save_unread_count(&self, conversation: &Conversation) -> Result<()> {
        self.update(conversations::ActiveModel {
            store_id: Set(self.store().to_string()),
            id: Set(conversation.id.to_string()),
            unread_count: Set(conversation.unread_count),
            updated_at: Set(conversation.updated_at.millis()),
            ..Default::default()
        })
        .await
    }

    /// Locks the tickets of a conversation until the end of the transaction. The caller has locked the conversation.
    pub async fn lock_tickets_of(&self, conversation: &ConversationId) -> Result<()> {
        self.lock_tickets(Expr::value(conversation)).await
    }

    /// Locks the tickets of a conversation in the order of their ids, as every writer does, to prevent deadlocks.
    async fn lock_tickets(&self, conversation: Expr) -> Result<()> {
        use tickets::Column::{ConversationId, Id, StoreId};
        // Not needed on SQLite, which has one writer at a time.
        if self.on_postgres() {
            let of_conversation = StoreId.eq(self.store()).and(Expr::col(ConversationId).eq(conversation));
            let query = tickets::Entity::find().select_only().column(Id).filter(of_conversation).order_by_asc(Id);
            self.select_for_update(query, |_| Ok(())).await?;
        }
        Ok(())
    }

    /// Stores the labels and the update time of a conversation. Stores the labels' Bloom filter bits, by which filters skip tickets, on the
    /// conversation and its tickets. The caller has locked the tickets.
    pub async fn save_labels(&self, conversation: &Conversation) -> Result<()> {
        let marks = BloomBits::of_labels(&conversation.label_ids).bits();
        self.update(conversations::ActiveModel {
            store_id: Set(self.store().to_string()),
            id: Set(conversation.id.to_string()),
            label_ids: Set(json(&conversation.label_ids)),
            label_marks: Set(marks),
            updated_at: Set(conversation.updated_at.millis()),
            ..Default::default()
        })
        .await?;
        let marked = tickets::Entity::update_many()
            .col_expr(tickets::Column::LabelMarks, Expr::value(marks))
            .filter(tickets::Column::StoreId.eq(self.store()))
            .filter(tickets::Column::ConversationId.eq(&conversation.id))
            .filter(tickets::Column::LabelMarks.ne(marks));
        self.execute(&marked).await?;
        Ok(())
    }

    pub async fn add_label(&self, conversation: &ConversationId, label: &LabelId) -> Result<()> {
        self.insert(conversation_labels::ActiveModel {
            store_id: Set(self.store().to_string()),
            conversation_id: Set(conversation.to_string()),
            label_id: Set(label.to_string()),
        })
        .await
    }

    pub async fn remove_label(&self, conversation: &ConversationId, label: &LabelId) -> Result<()> {
        let labelled = Condition::all()
            .add(conversation_labels::Column::StoreId.eq(self.store()))
            .add(conversation_labels::Column::ConversationId.eq(conversation))
            .add(conversation_labels::Column::LabelId.eq(label));
        self.execute(&conversation_labels::Entity::delete_many().filter(labelled)).await?;
        Ok(())
    }

    /// Returns the ids and texts of the labels among `ids` that exist.
    pub async fn label_texts(&self, ids: &[&LabelId]) -> Result<Vec<(LabelId, String)>> {
        let query = labels::Entity::find()
            .select_only()
            .columns([labels::Column::Id, labels::Column::Label])
            .filter(labels::Column::StoreId.eq(self.store()))
            .filter(among(labels::Column::Id, ids.iter().copied()));
        self.select(query, |cells| Ok((cells.take()?, cells.take()?))).await
    }

    pub async fn contact(&self, id: &ContactId) -> Result<Option<Contact>> {
        self.first_locked(self.by_id::<Contact>(id.as_str())).await
    }

    pub async fn insert_contact(&self, contact: &Contact) -> Result<()> {
        let email_key = contact.email.as_deref().map(str::to_lowercase);
        self.insert(contacts::ActiveModel { email_key: Set(email_key), ..contact.row(self.store()) }).await
    }

    /// Stores a contact's custom fields and update times.
    pub async fn save_contact(&self, contact: &Contact) -> Result<()> {
        self.update(contacts::ActiveModel {
            store_id: Set(self.store().to_string()),
            id: Set(contact.id.to_string()),
            custom_fields: Set(contact.custom_fields.clone()),
            custom_fields_updated_at: Set(contact.custom_fields_updated_at.map(Timestamp::millis)),
            updated_at: Set(contact.updated_at.millis()),
            ..Default::default()
        })
        .await
    }

    pub async fn insert_comment(&self, comment: &Comment) -> Result<()> {
        self.insert(internal_comments::ActiveModel {
            store_id: Set(self.store().to_string()),
            id: Set(comment.id.to_string()),
            conversation_id: Set(comment.conversation_id.to_string()),
            text: Set(comment.text.clone()),
            created_by: Set(comment.created_by.to_string()),
            sent_at: Set(comment.sent_at.millis()),
            created_at: Set(comment.created_at.millis()),
            updated_at: Set(comment.updated_at.millis()),
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, sync::Arc, time::Duration};

    use sea_orm::{DbBackend, IdenStatic, Iterable};
    use tokio::time::{sleep, timeout};

    use super::*;
    use crate::{
        domain::clock::{Clock, SystemClock},
        store::fixture::Fixture,
    };

    #[tokio::test]
    async fn a_saved_ticket_writes_the_columns_that_requests_change() {
        let fixture = Fixture::new().await;
        fixture.ticket("t", |_| {}).await;
        let mut ticket = fixture.db.ticket(&fixture.store, &"t".into()).await.unwrap().unwrap();
        let mut columns = vec![
            "store_id",
            "id",
            "is_open",
            "closed_at",
            "reopened_at",
            "snoozed_until",
            "assignee_user_id",
            "handled_by",
            "ticket_fields",
            "ticket_fields_updated_at",
            "updated_at",
        ];
        let saved = |ticket: &Ticket| {
            let row = saved_columns(ticket, &fixture.store);
            let set = tickets::Column::iter().filter(|column| !row.get(*column).is_not_set());
            set.map(|column| column.as_str()).collect::<BTreeSet<_>>()
        };
        ticket.is_open = true;
        assert_eq!(saved(&ticket), columns.iter().copied().collect(), "the columns that `NOT_SAVED` does not list");
        ticket.is_open = false;
        columns.push("waiting_since");
        assert_eq!(saved(&ticket), columns.into_iter().collect());
    }

    /// Two transactions must not deadlock: the first has locked a ticket and, at its commit, checks the foreign key to the conversation.
    /// The second has locked that conversation and waits for the ticket.
    #[tokio::test]
    async fn concurrent_writes_to_a_ticket_and_its_conversation_do_not_deadlock() {
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
        let waits = "SELECT pid::bigint FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let ended = async {
            while fixture.db.first(Sql::fixed(waits), |cells| cells.take::<i64>()).await.unwrap().is_none() {
                sleep(Duration::from_millis(5)).await;
            }
            fields.commit().await
        };
        let both = async { tokio::join!(labels.lock_tickets_of(&conversation.id), ended) };
        let (held, ended) = timeout(Duration::from_secs(60), both).await.unwrap();
        ended.unwrap();
        held.unwrap();
        labels.commit().await.unwrap();
    }
}

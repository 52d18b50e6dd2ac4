//! Export: a store's records in pages, all read in one database snapshot. Called by `service::export` and `service::change_feed`.

use std::collections::HashMap;

use sea_orm::{ColumnTrait, DatabaseConnection, DatabaseTransaction, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::{
    domain::{
        ids::{StoreId, UserId},
        ndjson_records::{
            Account, Comment, Contact, ContactField, Conversation, Label, Message, Record, RecordKind, Role, Team, Template, Ticket,
            TicketField, User,
        },
    },
    store::{
        Db, Result,
        db::TransactionKind,
        entity::{
            account_users, accounts, contact_field_definitions, contacts, conversations, internal_comments, labels, messages, roles,
            stores, team_members, teams, templates, ticket_field_definitions, tickets, users,
        },
        ndjson_record_columns::NdjsonRecord,
    },
};

/// A read transaction on one store with a fixed snapshot: later writes do not change what it reads.
pub struct Export {
    tx: DatabaseTransaction,
    /// A connection outside of any pool, closed with the export. On a pooled connection, a failed transaction could stay open and disturb
    /// the next user of the connection.
    _connection: DatabaseConnection,
    store: String,
}

impl Db {
    /// Begins an export; `None` when there is no such store.
    pub async fn begin_export(&self, store: &StoreId) -> Result<Option<Export>> {
        let (connection, tx) = self.begin_alone(TransactionKind::Snapshot).await?;
        let found = stores::Entity::find_by_id(store.as_str()).one(&tx).await?;
        Ok(found.map(|_| Export { tx, _connection: connection, store: store.as_str().to_owned() }))
    }
}

/// Reads records of a type from its table, in the order of their ids. `$which` selects the records.
macro_rules! read {
    ($export:expr, $which:expr, $table:ident, $record:ident) => {{
        let rows = $table::Entity::find().filter($table::Column::StoreId.eq($export.store.as_str())).order_by_asc($table::Column::Id);
        let rows = match $which {
            Which::Page { after: None, size } => rows.limit(size),
            Which::Page { after: Some(after), size } => rows.filter($table::Column::Id.gt(after)).limit(size),
            Which::Named(ids) => rows.filter($table::Column::Id.is_in(ids.iter().map(String::as_str))),
        };
        rows.all(&$export.tx).await?.into_iter().map(|row| Ok(Record::$record($record::from_row(row)?))).collect::<Result<Vec<_>>>()?
    }};
}

/// Which records of a kind are read.
#[derive(Clone, Copy)]
enum Which<'a> {
    Page { after: Option<&'a str>, size: u64 },
    Named(&'a [String]),
}

impl Export {
    /// Returns at most `size` records of a kind in the order of their ids, after the id `after`.
    pub async fn page(&self, kind: RecordKind, after: Option<&str>, size: u64) -> Result<Vec<Record>> {
        self.records(kind, Which::Page { after, size }).await
    }

    /// Returns the records of a kind with these ids, in the order of ids. Records that do not exist are left out.
    pub async fn named(&self, kind: RecordKind, ids: &[String]) -> Result<Vec<Record>> {
        self.records(kind, Which::Named(ids)).await
    }

    /// Returns the transaction in which all reads of the export run.
    pub(in crate::store) fn snapshot(&self) -> &DatabaseTransaction {
        &self.tx
    }

    pub(in crate::store) fn store(&self) -> &str {
        &self.store
    }

    async fn records(&self, kind: RecordKind, which: Which<'_>) -> Result<Vec<Record>> {
        let mut records = match kind {
            RecordKind::Role => read!(self, which, roles, Role),
            RecordKind::User => read!(self, which, users, User),
            RecordKind::Team => read!(self, which, teams, Team),
            RecordKind::Account => read!(self, which, accounts, Account),
            RecordKind::Template => read!(self, which, templates, Template),
            RecordKind::Label => read!(self, which, labels, Label),
            RecordKind::ContactField => read!(self, which, contact_field_definitions, ContactField),
            RecordKind::TicketField => read!(self, which, ticket_field_definitions, TicketField),
            RecordKind::Contact => read!(self, which, contacts, Contact),
            RecordKind::Conversation => read!(self, which, conversations, Conversation),
            RecordKind::Ticket => read!(self, which, tickets, Ticket),
            RecordKind::Message => read!(self, which, messages, Message),
            RecordKind::Comment => read!(self, which, internal_comments, Comment),
        };
        match kind {
            RecordKind::Team => self.add_members(&mut records).await?,
            RecordKind::Account => self.add_allowed_users(&mut records).await?,
            _ => {}
        }
        Ok(records)
    }

    /// Adds the members of the teams among `records`.
    async fn add_members(&self, records: &mut [Record]) -> Result<()> {
        let members = team_members::Entity::find()
            .filter(team_members::Column::StoreId.eq(self.store.as_str()))
            .filter(team_members::Column::TeamId.is_in(records.iter().map(Record::id)))
            .order_by_asc(team_members::Column::TeamId)
            .order_by_asc(team_members::Column::Position)
            .all(&self.tx)
            .await?;
        let mut users: HashMap<String, Vec<UserId>> = HashMap::new();
        for member in members {
            users.entry(member.team_id).or_default().push(member.user_id.into());
        }
        for record in records {
            if let Record::Team(team) = record {
                team.users = users.remove(team.id.as_str()).unwrap_or_default();
            }
        }
        Ok(())
    }

    /// Adds the users that the accounts among `records` list as allowed.
    async fn add_allowed_users(&self, records: &mut [Record]) -> Result<()> {
        let allowed = account_users::Entity::find()
            .filter(account_users::Column::StoreId.eq(self.store.as_str()))
            .filter(account_users::Column::AccountId.is_in(records.iter().map(Record::id)))
            .order_by_asc(account_users::Column::UserId)
            .all(&self.tx)
            .await?;
        let mut users: HashMap<String, Vec<UserId>> = HashMap::new();
        for row in allowed {
            users.entry(row.account_id).or_default().push(row.user_id.into());
        }
        for record in records {
            if let Record::Account(account) = record {
                account.user_ids = users.remove(account.id.as_str());
            }
        }
        Ok(())
    }
}

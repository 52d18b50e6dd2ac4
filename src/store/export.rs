//! Export: a store's records in pages, all read in one database snapshot. Called by `service::export` and `service::change_feed`.

use std::collections::HashMap;

use sea_orm::{ColumnTrait, DatabaseConnection, DatabaseTransaction, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::{
    domain::{
        ids::{StoreId, UserId},
        ndjson_records::{
            Account, Comment, Contact, ContactField, Conversation, Direction, Label, Message, Record, RecordKind, Role, Team, Template,
            Ticket, TicketField, User,
        },
        stores_and_accounts::Channel,
        time::Timestamp,
    },
    store::{
        Db, Error, Result,
        db::TransactionKind,
        entity::{
            account_users, accounts, contact_field_definitions, contacts, conversations, internal_comments, labels, messages, roles,
            stores, team_members, teams, templates, ticket_field_definitions, tickets, users,
        },
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

/// Reads rows of the store from `$table`, in the order of their ids. `$which` selects the rows.
macro_rules! rows {
    ($export:expr, $table:ident, $which:expr) => {{
        let rows = $table::Entity::find().filter($table::Column::StoreId.eq($export.store.as_str())).order_by_asc($table::Column::Id);
        let rows = match $which {
            Which::Page { after: None, size } => rows.limit(size),
            Which::Page { after: Some(after), size } => rows.filter($table::Column::Id.gt(after)).limit(size),
            Which::Named(ids) => rows.filter($table::Column::Id.is_in(ids.iter().map(String::as_str))),
        };
        rows.all(&$export.tx).await?
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
        Ok(match kind {
            RecordKind::Role => rows!(self, roles, which).into_iter().map(|row| Record::Role(role(row))).collect(),
            RecordKind::User => rows!(self, users, which).into_iter().map(|row| Record::User(user(row))).collect(),
            RecordKind::Team => self.teams(rows!(self, teams, which)).await?,
            RecordKind::Account => self.accounts(rows!(self, accounts, which)).await?,
            RecordKind::Template => rows!(self, templates, which).into_iter().map(template).collect::<Result<_>>()?,
            RecordKind::Label => rows!(self, labels, which).into_iter().map(|row| Record::Label(label(row))).collect(),
            RecordKind::ContactField => {
                rows!(self, contact_field_definitions, which).into_iter().map(contact_field).collect::<Result<_>>()?
            }
            RecordKind::TicketField => rows!(self, ticket_field_definitions, which).into_iter().map(ticket_field).collect::<Result<_>>()?,
            RecordKind::Contact => rows!(self, contacts, which).into_iter().map(contact).collect::<Result<_>>()?,
            RecordKind::Conversation => rows!(self, conversations, which).into_iter().map(conversation).collect::<Result<_>>()?,
            RecordKind::Ticket => rows!(self, tickets, which).into_iter().map(ticket).collect::<Result<_>>()?,
            RecordKind::Message => rows!(self, messages, which).into_iter().map(message).collect::<Result<_>>()?,
            RecordKind::Comment => rows!(self, internal_comments, which).into_iter().map(|row| Record::Comment(comment(row))).collect(),
        })
    }

    async fn teams(&self, teams: Vec<teams::Model>) -> Result<Vec<Record>> {
        let members = team_members::Entity::find()
            .filter(team_members::Column::StoreId.eq(self.store.as_str()))
            .filter(team_members::Column::TeamId.is_in(teams.iter().map(|team| team.id.as_str())))
            .order_by_asc(team_members::Column::TeamId)
            .order_by_asc(team_members::Column::Position)
            .all(&self.tx)
            .await?;
        let mut users: HashMap<String, Vec<UserId>> = HashMap::new();
        for member in members {
            users.entry(member.team_id).or_default().push(member.user_id.into());
        }
        let record = |team: teams::Model| {
            Record::Team(Team {
                users: users.remove(&team.id).unwrap_or_default(),
                id: team.id.into(),
                name: team.name,
                description: team.description,
                created_at: Some(Timestamp::from_millis(team.created_at)),
            })
        };
        Ok(teams.into_iter().map(record).collect())
    }

    async fn accounts(&self, accounts: Vec<accounts::Model>) -> Result<Vec<Record>> {
        let allowed = account_users::Entity::find()
            .filter(account_users::Column::StoreId.eq(self.store.as_str()))
            .filter(account_users::Column::AccountId.is_in(accounts.iter().map(|account| account.id.as_str())))
            .order_by_asc(account_users::Column::UserId)
            .all(&self.tx)
            .await?;
        let mut users: HashMap<String, Vec<UserId>> = HashMap::new();
        for row in allowed {
            users.entry(row.account_id).or_default().push(row.user_id.into());
        }
        let record = |account: accounts::Model| {
            Ok(Record::Account(Account {
                user_ids: users.remove(&account.id),
                id: account.id.into(),
                channel: Channel(account.channel),
                name: account.name,
                status: account.status,
                last_authorized_at: at(account.last_authorized_at),
                metadata: raw(account.metadata)?,
                created_at: Some(Timestamp::from_millis(account.created_at)),
                updated_at: Some(Timestamp::from_millis(account.updated_at)),
            }))
        };
        accounts.into_iter().map(record).collect()
    }
}

fn at(millis: Option<i64>) -> Option<Timestamp> {
    millis.map(Timestamp::from_millis)
}

/// Converts stored JSON to a `RawValue`, which keeps it byte for byte.
fn raw(text: Option<String>) -> Result<Option<Box<RawValue>>> {
    text.map(|text| RawValue::from_string(text).map_err(|error| Error::Damaged(error.to_string()))).transpose()
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| Error::Damaged(error.to_string()))
}

fn optional<T: DeserializeOwned>(text: Option<String>) -> Result<Option<T>> {
    text.as_deref().map(read).transpose()
}

fn role(row: roles::Model) -> Role {
    Role { id: row.id.into(), name: row.name, kind: row.kind }
}

fn user(row: users::Model) -> User {
    User {
        id: row.id.into(),
        user_id: row.user_id.map(Into::into),
        name: row.name,
        email: row.email,
        role_id: row.role_id.map(Into::into),
        created_at: Some(Timestamp::from_millis(row.created_at)),
    }
}

fn template(row: templates::Model) -> Result<Record> {
    Ok(Record::Template(Template {
        id: row.id.into(),
        account_id: row.account_id.into(),
        name: row.name,
        parameter_format: row.parameter_format,
        language: row.language,
        status: row.status,
        category: row.category,
        components: RawValue::from_string(row.components).map_err(|error| Error::Damaged(error.to_string()))?,
    }))
}

fn label(row: labels::Model) -> Label {
    Label {
        id: row.id.into(),
        label: row.label,
        color: row.color,
        created_at: Some(Timestamp::from_millis(row.created_at)),
        updated_at: Some(Timestamp::from_millis(row.updated_at)),
    }
}

fn contact_field(row: contact_field_definitions::Model) -> Result<Record> {
    Ok(Record::ContactField(ContactField {
        id: row.id.into(),
        name: row.name,
        display_type: row.display_type,
        data_type: row.data_type,
        sort_order: row.sort_order,
        active: row.active,
        description: row.description,
        select_options: raw(row.select_options)?,
        regex: row.regex,
        max_items: row.max_items,
    }))
}

fn ticket_field(row: ticket_field_definitions::Model) -> Result<Record> {
    Ok(Record::TicketField(TicketField {
        id: row.id.into(),
        name: row.name,
        display_type: row.display_type,
        data_type: row.data_type,
        sort_order: row.sort_order,
        is_required: row.is_required,
        active: row.active,
        description: row.description,
        select_options: raw(row.select_options)?,
        regex: row.regex,
        show_conditions: raw(row.show_conditions)?,
        max_items: row.max_items,
        account_ids: optional(row.account_ids)?,
        created_at: Timestamp::from_millis(row.created_at),
        updated_at: Timestamp::from_millis(row.updated_at),
    }))
}

fn contact(row: contacts::Model) -> Result<Record> {
    Ok(Record::Contact(Contact {
        id: row.id.into(),
        full_name: row.full_name,
        first_name: row.first_name,
        last_name: row.last_name,
        email: row.email,
        phone: row.phone,
        secondary_phones: optional(row.secondary_phones)?,
        secondary_emails: optional(row.secondary_emails)?,
        addresses: optional(row.addresses)?,
        note: row.note,
        custom_fields: optional(row.custom_fields)?,
        custom_fields_updated_at: at(row.custom_fields_updated_at),
        created_at: Timestamp::from_millis(row.created_at),
        updated_at: Timestamp::from_millis(row.updated_at),
    }))
}

fn conversation(row: conversations::Model) -> Result<Record> {
    Ok(Record::Conversation(Conversation {
        id: row.id.into(),
        channel: Channel(row.channel),
        account_id: row.account_id.into(),
        contact_id: row.contact_id.into(),
        display_name: row.display_name,
        reference_id: row.reference_id,
        label_ids: read(&row.label_ids)?,
        is_spam: row.is_spam,
        unread_msg_cnt: row.unread_count,
        email_subject: row.email_subject,
        created_at: Timestamp::from_millis(row.created_at),
        updated_at: Timestamp::from_millis(row.updated_at),
        all_msg_cnt: None,
        last_recipient_msg_date: None,
        last_msg: None,
    }))
}

fn ticket(row: tickets::Model) -> Result<Record> {
    Ok(Record::Ticket(Ticket {
        id: row.id.into(),
        ticket_number: Some(row.ticket_number),
        is_open: row.is_open,
        opened_at: Timestamp::from_millis(row.opened_at),
        conversation_id: row.conversation_id.into(),
        channel: Some(Channel(row.channel)),
        account_id: Some(row.account_id.into()),
        contact_id: Some(row.contact_id.into()),
        is_spam: row.is_spam,
        is_follow_up: row.is_follow_up,
        closed_at: at(row.closed_at),
        reopened_at: at(row.reopened_at),
        snoozed_until: at(row.snoozed_until),
        assignee_user_id: row.assignee_user_id.map(Into::into),
        handled_by: row.handled_by.map(Into::into),
        resolution_status: None,
        ticket_fields: read(&row.ticket_fields)?,
        ticket_fields_updated_at: at(row.ticket_fields_updated_at),
        created_at: Some(Timestamp::from_millis(row.created_at)),
        updated_at: Some(Timestamp::from_millis(row.updated_at)),
    }))
}

fn message(row: messages::Model) -> Result<Record> {
    Ok(Record::Message(Message {
        id: row.id.into(),
        conversation_id: row.conversation_id.into(),
        direction: if row.inbound { Direction::Inbound } else { Direction::Outbound },
        sent_at: Timestamp::from_millis(row.channel_sent_at.unwrap_or(row.sent_at)),
        text: row.text,
        images: optional(row.images)?,
        kind: row.kind,
        author_user_id: row.author_user_id.map(Into::into),
        is_sent_from_app: row.is_sent_from_app,
        sender: raw(row.sender)?,
        payload: raw(row.payload)?,
        external_id: row.external_id,
        created_at: Some(Timestamp::from_millis(row.created_at)),
        updated_at: Some(Timestamp::from_millis(row.updated_at)),
    }))
}

fn comment(row: internal_comments::Model) -> Comment {
    Comment {
        id: row.id.into(),
        conversation_id: row.conversation_id.into(),
        text: row.text,
        created_by: row.created_by.into(),
        sent_at: Timestamp::from_millis(row.sent_at),
        created_at: Some(Timestamp::from_millis(row.created_at)),
        updated_at: Some(Timestamp::from_millis(row.updated_at)),
    }
}

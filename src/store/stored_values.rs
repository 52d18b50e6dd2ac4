//! Stored values: the types that properties of records have, and the type of the column that stores each of them.

use rusqlite::types::FromSql;
use sea_orm::Value;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio_postgres::types::FromSqlOwned;

use crate::{
    domain::{
        ids::{
            AccountId, CommentId, ContactId, ConversationId, CredentialId, DraftId, EventId, FieldId, KeyId, LabelId, MessageId, RoleId,
            SeatId, StoreId, TeamId, TemplateId, TicketId, UserId, WebhookId,
        },
        ordered_object::Entries,
        outbound_messages::OutboxEntry,
        stores_and_accounts::Channel,
        time::Timestamp,
    },
    store::error::{Error, Result},
};

/// A type of properties of records. Its values are stored in a column.
pub(in crate::store) trait StoredValue: Sized {
    /// The type of the column, as its entity declares it. Both drivers decode it.
    type Cell: FromSql + FromSqlOwned;

    fn from_cell(cell: Self::Cell) -> Result<Self>;

    fn into_cell(self) -> Self::Cell;
}

/// A property that is absent from a record is NULL in the table.
impl<T: StoredValue> StoredValue for Option<T> {
    type Cell = Option<T::Cell>;

    fn from_cell(cell: Self::Cell) -> Result<Self> {
        cell.map(T::from_cell).transpose()
    }

    fn into_cell(self) -> Self::Cell {
        self.map(T::into_cell)
    }
}

macro_rules! stored_unchanged {
    ($($type:ty),*) => {$(
        impl StoredValue for $type {
            type Cell = Self;

            fn from_cell(cell: Self) -> Result<Self> {
                Ok(cell)
            }

            fn into_cell(self) -> Self {
                self
            }
        }
    )*};
}

stored_unchanged!(String, bool, i64, f64, Vec<u8>);

/// Ids are stored as texts. As values of statements they are texts, too.
macro_rules! ids {
    ($($id:ident),* $(,)?) => {$(
        impl StoredValue for $id {
            type Cell = String;

            fn from_cell(cell: String) -> Result<Self> {
                Ok(cell.into())
            }

            fn into_cell(self) -> String {
                self.into_string()
            }
        }

        impl From<&$id> for Value {
            fn from(id: &$id) -> Self {
                id.as_str().into()
            }
        }
    )*};
}

ids! {
    AccountId, CommentId, ContactId, ConversationId, CredentialId, DraftId, EventId, FieldId, KeyId, LabelId, MessageId, RoleId, SeatId,
    StoreId, TeamId, TemplateId, TicketId, UserId, WebhookId,
}

/// A time is stored in milliseconds since 1970.
impl StoredValue for Timestamp {
    type Cell = i64;

    fn from_cell(cell: i64) -> Result<Self> {
        Ok(Self::from_millis(cell))
    }

    fn into_cell(self) -> i64 {
        self.millis()
    }
}

impl From<Timestamp> for Value {
    fn from(at: Timestamp) -> Self {
        at.millis().into()
    }
}

impl StoredValue for Channel {
    type Cell = String;

    fn from_cell(cell: String) -> Result<Self> {
        Ok(Self(cell))
    }

    fn into_cell(self) -> String {
        self.0
    }
}

/// JSON that stays byte for byte as it was sent.
impl StoredValue for Box<RawValue> {
    type Cell = String;

    fn from_cell(cell: String) -> Result<Self> {
        RawValue::from_string(cell).map_err(|error| Error::Damaged(error.to_string()))
    }

    fn into_cell(self) -> String {
        <Box<str>>::from(self).into()
    }
}

/// Lists and objects are stored as JSON.
macro_rules! stored_as_json {
    ($($type:ty),*) => {$(
        impl StoredValue for $type {
            type Cell = String;

            fn from_cell(cell: String) -> Result<Self> {
                serde_json::from_str(&cell).map_err(|error| Error::Damaged(error.to_string()))
            }

            fn into_cell(self) -> String {
                json(&self)
            }
        }
    )*};
}

stored_as_json!(Entries, OutboxEntry, Vec<String>, Vec<AccountId>, Vec<LabelId>);

/// Serialises a list or an object whose serialisation cannot fail: its keys are texts, and no type of its values has a serialiser that can
/// fail.
pub(in crate::store) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| unreachable!("a value that cannot be serialised: {error}"))
}

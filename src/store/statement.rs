//! Statements that SeaORM builds from entities, for the executors of this room, and rows decoded into an entity's model.

use sea_orm::{
    ActiveModelTrait, ColumnTrait, ColumnType, DbBackend, DeleteMany, EntityTrait, Insert, Iterable, QueryTrait, Select, Statement,
    StatementBuilder, TryIntoModel, UpdateMany, Value,
    sea_query::{DeleteStatement, InsertStatement, LockType, SelectStatement, UpdateStatement},
};

use super::{
    Db, Error, Result,
    sql::{Cells, Param, Sql, text_value},
    transaction::Tx,
    write::Write,
};
use crate::domain::{
    ids::{
        AccountId, CommentId, ContactId, ConversationId, FieldId, KeyId, LabelId, MessageId, RoleId, SeatId, StoreId, TeamId, TemplateId,
        TicketId, UserId, WebhookId,
    },
    time::Timestamp,
};

/// What changes rows: a builder of SeaORM's, or of sea-query's beneath it.
pub(super) trait Change {
    fn statement(&self, backend: DbBackend) -> Statement;
}

impl<A: ActiveModelTrait> Change for Insert<A> {
    fn statement(&self, backend: DbBackend) -> Statement {
        self.build(backend)
    }
}

impl<E: EntityTrait> Change for UpdateMany<E> {
    fn statement(&self, backend: DbBackend) -> Statement {
        self.build(backend)
    }
}

impl<E: EntityTrait> Change for DeleteMany<E> {
    fn statement(&self, backend: DbBackend) -> Statement {
        self.build(backend)
    }
}

macro_rules! changes {
    ($($statement:ident),*) => {$(
        impl Change for $statement {
            fn statement(&self, backend: DbBackend) -> Statement {
                StatementBuilder::build(self, &backend)
            }
        }
    )*};
}

changes!(InsertStatement, UpdateStatement, DeleteStatement);

/// What reads rows: `Entity::find()`, or a `SelectStatement` where it joins.
pub(super) trait Query {
    fn into_select(self) -> SelectStatement;
}

impl<E: EntityTrait> Query for Select<E> {
    fn into_select(self) -> SelectStatement {
        self.into_query()
    }
}

impl Query for SelectStatement {
    fn into_select(self) -> SelectStatement {
        self
    }
}

/// Ids and instants as values of columns.
macro_rules! values {
    ($($id:ident),*) => {$(
        impl From<&$id> for Value {
            fn from(id: &$id) -> Self {
                id.as_str().into()
            }
        }
    )*};
}

values!(
    AccountId, CommentId, ContactId, ConversationId, FieldId, KeyId, LabelId, MessageId, RoleId, SeatId, StoreId, TeamId, TemplateId, TicketId,
    UserId, WebhookId
);

impl From<Timestamp> for Value {
    fn from(at: Timestamp) -> Self {
        at.millis().into()
    }
}

/// A statement with its values, for the connections of this room.
fn sql(statement: Statement) -> Result<Sql> {
    let values = statement.values.map_or_else(Vec::new, |values| values.0);
    values.into_iter().try_fold(Sql::fixed(&statement.sql), |sql, value| Ok(sql.with(param(value)?)))
}

fn select_sql(query: impl Query, backend: DbBackend) -> Result<Sql> {
    sql(StatementBuilder::build(&query.into_select(), &backend))
}

fn param(value: Value) -> Result<Param> {
    Ok(match value {
        Value::String(text) => text.map_or(Param::Null, |text| text_value(&text)),
        Value::BigInt(number) => number.map_or(Param::NoInteger, Param::Integer),
        Value::BigUnsigned(Some(number)) if i64::try_from(number).is_ok() => Param::Integer(number.cast_signed()),
        Value::Double(number) => number.map_or(Param::NoNumber, Param::Number),
        Value::Bool(flag) => flag.map_or(Param::NoFlag, Param::Flag),
        Value::Bytes(Some(bytes)) => Param::Bytes(bytes),
        other => return Err(Error::Damaged(format!("no column holds a value such as {other:?}"))),
    })
}

/// The model of a row that has the columns of the entity in their order, as `Entity::find()` selects them.
pub(super) fn model<E>(cells: &mut Cells<'_>) -> Result<E::Model>
where
    E: EntityTrait,
    E::ActiveModel: ActiveModelTrait<Entity = E> + TryIntoModel<E::Model>,
{
    let mut active = <E::ActiveModel as ActiveModelTrait>::default();
    for column in E::Column::iter() {
        let value = match column.def().get_column_type() {
            ColumnType::BigInteger => Value::BigInt(cells.take()?),
            ColumnType::Double => Value::Double(cells.take()?),
            ColumnType::Boolean => Value::Bool(cells.take()?),
            ColumnType::VarBinary(_) | ColumnType::Blob => Value::Bytes(cells.take()?),
            _ => Value::String(cells.take()?),
        };
        active.try_set(column, value)?;
    }
    Ok(active.try_into_model()?)
}

impl Db {
    /// The rows of a query, each through `decode`.
    pub(super) async fn select<T, D>(&self, query: impl Query, decode: D) -> Result<Vec<T>>
    where
        T: Send + 'static,
        D: Fn(&mut Cells<'_>) -> Result<T> + Send + 'static,
    {
        self.all(select_sql(query, self.backend())?, decode).await
    }
}

impl Tx {
    /// The number of rows that a statement changed.
    pub(super) async fn execute(&self, change: &impl Change) -> Result<u64> {
        self.run(&sql(change.statement(self.backend()))?).await
    }

    /// The rows of a query, each through `decode`.
    pub(super) async fn select<T>(&self, query: impl Query, decode: impl Fn(&mut Cells<'_>) -> Result<T>) -> Result<Vec<T>> {
        self.all(&select_sql(query, self.backend())?, decode).await
    }
}

impl Write {
    /// The number of rows that a statement changed.
    pub(super) async fn execute(&self, change: &impl Change) -> Result<u64> {
        self.run(sql(change.statement(self.backend()))?).await
    }

    /// The rows of a query, each through `decode`.
    pub(super) async fn select<T>(&self, query: impl Query, decode: impl Fn(&mut Cells<'_>) -> Result<T>) -> Result<Vec<T>> {
        self.all(select_sql(query, self.backend())?, decode).await
    }

    /// The same; the rows are held until the end of the transaction, as [`Sql::hold`] has it. SQLite's one writer holds all there are.
    pub(super) async fn select_held<T>(&self, query: impl Query, decode: impl Fn(&mut Cells<'_>) -> Result<T>) -> Result<Vec<T>> {
        let mut query = query.into_select();
        query.lock(LockType::NoKeyUpdate);
        let mut sql = select_sql(query, self.backend())?;
        sql.note_held();
        self.all(sql, decode).await
    }
}

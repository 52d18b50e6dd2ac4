//! SQL from SeaORM entities (descriptions of tables): converts statements that SeaORM and sea-query build into [`Sql`], for the connections
//! of `store`, and decodes rows into an entity's model (the struct of a row). `statement::run_entity_statements` runs the statements.

use std::{
    any::TypeId,
    collections::HashMap,
    fmt,
    sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock},
};

use sea_orm::{
    ActiveModelTrait, ColumnTrait, ColumnType, DbBackend, DeleteMany, EntityName, EntityTrait, ExprTrait, IdenStatic, Insert, Iterable,
    PrimaryKeyToColumn, QuerySelect, QueryTrait, Select, Statement, StatementBuilder, TryIntoModel, UpdateMany, Value,
    sea_query::{
        DeleteStatement, Expr, InsertStatement, IntoColumnRef, PostgresQueryBuilder, QueryBuilder, SelectStatement, SqlWriter,
        SqliteQueryBuilder, UpdateStatement,
    },
};

use crate::{
    domain::ids::StoreId,
    store::{
        error::{Error, Result},
        parameterised_sql::{Param, Sql, filled, text_value},
        row_decoding::{Cells, Row},
    },
};

/// A statement that changes rows: built by SeaORM, or by sea-query, on which SeaORM is based.
pub(in crate::store) trait WriteStatement {
    fn statement(&self, backend: DbBackend) -> Statement;
}

impl<A: ActiveModelTrait> WriteStatement for Insert<A> {
    fn statement(&self, backend: DbBackend) -> Statement {
        self.build(backend)
    }
}

impl<E: EntityTrait> WriteStatement for UpdateMany<E> {
    fn statement(&self, backend: DbBackend) -> Statement {
        self.build(backend)
    }
}

impl<E: EntityTrait> WriteStatement for DeleteMany<E> {
    fn statement(&self, backend: DbBackend) -> Statement {
        self.build(backend)
    }
}

macro_rules! changes {
    ($($statement:ident),*) => {$(
        impl WriteStatement for $statement {
            fn statement(&self, backend: DbBackend) -> Statement {
                StatementBuilder::build(self, &backend)
            }
        }
    )*};
}

changes!(InsertStatement, UpdateStatement, DeleteStatement);

/// A statement that reads rows: a query of SeaORM, such as `Entity::find()`, or a `SelectStatement` of sea-query.
pub(in crate::store) trait ReadStatement {
    fn into_select(self) -> SelectStatement;
}

impl<E: EntityTrait> ReadStatement for Select<E> {
    fn into_select(self) -> SelectStatement {
        self.into_query()
    }
}

impl ReadStatement for SelectStatement {
    fn into_select(self) -> SelectStatement {
        self
    }
}

/// The text and the values of a query. Each value is bound, except that of a LIMIT, which is a literal (see [`Sql::limit`]).
#[derive(Default)]
struct QueryWriter {
    text: String,
    values: Vec<Value>,
}

impl fmt::Write for QueryWriter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text.write_str(text)
    }
}

impl fmt::Display for QueryWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl SqlWriter for QueryWriter {
    fn push_param<B: QueryBuilder>(&mut self, value: Value, _: &B) {
        match value {
            Value::BigUnsigned(Some(rows)) if self.text.ends_with(" LIMIT ") => self.text.push_str(&rows.to_string()),
            value => {
                self.values.push(value);
                self.text.push('$');
                self.text.push_str(&self.values.len().to_string());
            }
        }
    }

    fn as_writer(&mut self) -> &mut dyn fmt::Write {
        self
    }
}

/// Returns the condition that a column has one of these values. If there are no values, the condition is the constant `FALSE`; sea-query
/// would write a comparison of two bound numbers. The values are padded as in [`Sql::list`], so that there are few different SQL texts.
pub(in crate::store) fn among<C: ColumnTrait, V: Into<Value>>(column: C, values: impl IntoIterator<Item = V>) -> Expr {
    one_of(Expr::col(column.as_column_ref()), values)
}

/// Like [`among`], for any expression.
pub(in crate::store) fn one_of<V: Into<Value>>(tested: Expr, values: impl IntoIterator<Item = V>) -> Expr {
    let values = filled(values.into_iter().map(Into::into).collect());
    if values.is_empty() { Expr::Constant(false.into()) } else { tested.is_in(values) }
}

/// Returns the condition that a column is this flag, as a literal (see [`Sql::flag`]).
pub(in crate::store) fn is(column: impl ColumnTrait, flag: bool) -> Expr {
    Expr::col(column.as_column_ref()).eq(Expr::Constant(flag.into()))
}

/// Returns the condition that two columns are equal.
pub(in crate::store) fn equal_columns(one: impl ColumnTrait, other: impl ColumnTrait) -> Expr {
    Expr::col(one.as_column_ref()).equals(other.as_column_ref())
}

/// Converts a statement that changes rows into an [`Sql`].
pub(in crate::store) fn change_sql(change: &impl WriteStatement, backend: DbBackend) -> Result<Sql> {
    let statement = change.statement(backend);
    bound(&statement.sql, statement.values.map_or_else(Vec::new, |values| values.0))
}

fn bound(text: &str, values: impl IntoIterator<Item = Value>) -> Result<Sql> {
    values.into_iter().try_fold(Sql::fixed(text), |sql, value| Ok(sql.with(param(value)?)))
}

/// Converts a query into an [`Sql`].
pub(in crate::store) fn select_sql(query: impl ReadStatement, backend: DbBackend) -> Result<Sql> {
    let (query, mut written) = (query.into_select(), QueryWriter::default());
    match backend {
        DbBackend::Sqlite => query.build_collect_into(SqliteQueryBuilder, &mut written),
        _ => query.build_collect_into(PostgresQueryBuilder, &mut written),
    }
    bound(&written.text, written.values)
}

/// Converts a value into a parameter. A text is moved, unless U+0000 has to be replaced in it.
pub(in crate::store) fn param(value: Value) -> Result<Param> {
    Ok(match value {
        Value::String(Some(text)) if !text.contains('\0') => Param::Text(text),
        Value::String(text) => text.map_or(Param::Null, |text| text_value(&text)),
        Value::BigInt(number) => number.map_or(Param::NoInteger, Param::Integer),
        Value::BigUnsigned(Some(number)) if i64::try_from(number).is_ok() => Param::Integer(number.cast_signed()),
        Value::Double(number) => number.map_or(Param::NoNumber, Param::Number),
        Value::Bool(flag) => flag.map_or(Param::NoFlag, Param::Flag),
        Value::Bytes(Some(bytes)) => Param::Bytes(bytes),
        other => return Err(Error::Damaged(format!("no column holds a value such as {other:?}"))),
    })
}

/// Decodes a row into the entity's model. The row has the columns of the entity in their order, as `Entity::find()` selects them.
pub(in crate::store) fn model<E>(cells: &mut Cells<'_>) -> Result<E::Model>
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

/// Returns the text of a statement from a cache; builds the text if it is not there. The key of the cache is the entity, `verb`, the
/// columns that the statement sets, and the database. `verb` is `insert` or `update`. For an insertion with a computed column, `verb` is
/// instead the SQL of that column, so that different SQL has different keys.
fn cached_sql<E: EntityTrait>(verb: &'static str, set: &[E::Column], backend: DbBackend, build: impl FnOnce() -> String) -> Arc<str> {
    type StatementKey = (TypeId, &'static str, u64, bool);
    static TEXTS: LazyLock<RwLock<HashMap<StatementKey, Arc<str>>>> = LazyLock::new(RwLock::default);
    // One bit per column, by its position; no table has 64 columns.
    let columns = (0_u32..).zip(E::Column::iter()).filter(|(_, column)| set.iter().any(|set| set.as_str() == column.as_str()));
    let shape = (TypeId::of::<E>(), verb, columns.fold(0, |bits, (place, _)| bits | 1 << place), backend == DbBackend::Postgres);
    let known = TEXTS.read().unwrap_or_else(PoisonError::into_inner).get(&shape).cloned();
    known.unwrap_or_else(|| TEXTS.write().unwrap_or_else(PoisonError::into_inner).entry(shape).or_insert_with(|| build().into()).clone())
}

/// Returns the columns of `row` that have a value, with these values.
fn set_columns<A: ActiveModelTrait>(mut row: A) -> (Vec<Column<A>>, Vec<Value>) {
    Column::<A>::iter().filter_map(|column| Some((column, row.take(column).into_value()?))).unzip()
}

type Column<A> = <<A as ActiveModelTrait>::Entity as EntityTrait>::Column;

/// Returns the statement that inserts a row. Its text is built once for each set of columns.
pub(in crate::store) fn insert<A: ActiveModelTrait>(row: A, backend: DbBackend) -> Result<Sql> {
    insert_all([row], None, backend)
}

/// Returns the statement that inserts rows, which all set the columns that the first row sets. There must be at least one row. `computed`
/// is a further column, with the SQL for its value. The text for a single row is built once for each set of columns.
pub(in crate::store) fn insert_all<A: ActiveModelTrait>(
    rows: impl IntoIterator<Item = A>,
    computed: Option<(Column<A>, &'static str)>,
    backend: DbBackend,
) -> Result<Sql> {
    let (columns, rows): (Vec<_>, Vec<_>) = rows.into_iter().map(set_columns).unzip();
    let columns = columns.into_iter().next().unwrap_or_default();
    let build = || {
        let mut insert = InsertStatement::new();
        insert.into_table(A::Entity::default().table_ref());
        insert.columns(columns.iter().copied().chain(computed.map(|(column, _)| column)));
        for values in &rows {
            // Only the number of the values matters for the text.
            insert.values_panic(values.iter().map(|value| value.as_null().into()).chain(computed.map(|(_, sql)| Expr::cust(sql))));
        }
        StatementBuilder::build(&insert, &backend).sql
    };
    let verb = computed.map_or("insert", |(_, sql)| sql);
    let text = if rows.len() == 1 { cached_sql::<A::Entity>(verb, &columns, backend, build) } else { build().into() };
    bound(&text, rows.into_iter().flatten())
}

/// Returns the statement that updates one row. The primary key in `row` selects the row, and the other columns that are set in `row` are
/// written. Fails if the primary key is not set. The text of the statement is built once for each set of columns.
pub(in crate::store) fn update<A: ActiveModelTrait>(row: A, backend: DbBackend) -> Result<Sql> {
    let keys: Vec<_> = <A::Entity as EntityTrait>::PrimaryKey::iter().map(PrimaryKeyToColumn::into_column).collect();
    let is_key = |column: &Column<A>| keys.iter().any(|key| key.as_str() == column.as_str());
    let (columns, values) = set_columns(row);
    let (key, set): (Vec<_>, Vec<_>) = columns.iter().copied().zip(values).partition(|(column, _)| is_key(column));
    if key.len() != keys.len() {
        return Err(Error::Damaged(format!("a row of {} was to be changed without its key", A::Entity::default().table_name())));
    }
    let text = cached_sql::<A::Entity>("update", &columns, backend, || {
        let mut update = UpdateStatement::new();
        update.table(A::Entity::default().table_ref()).values(set.iter().map(|(column, value)| (*column, Expr::val(value.clone()))));
        for (column, value) in &key {
            update.and_where(Expr::col(*column).eq(value.clone()));
        }
        StatementBuilder::build(&update, &backend).sql
    });
    bound(&text, set.into_iter().chain(key).map(|(_, value)| value))
}

/// A query whose SQL is always the same. The SQL is built once from the entities, and is for both databases. Values of a request are
/// parameters ([`equals_parameter`]), of which the first is the id of the store. All other values are written as literals.
pub(in crate::store) struct FixedQuery {
    build: fn() -> SelectStatement,
    text: OnceLock<String>,
}

impl FixedQuery {
    pub const fn new(build: fn() -> SelectStatement) -> Self {
        Self { build, text: OnceLock::new() }
    }

    /// Returns the query with its values: the id of the store, and the texts for the other parameters.
    pub fn sql(&self, store: &StoreId, texts: &[&str]) -> Sql {
        let text = self.text.get_or_init(|| (self.build)().to_string(PostgresQueryBuilder));
        texts.iter().fold(Sql::of(store, text), |sql, text| sql.with(text_value(text)))
    }
}

/// Returns the condition that a column equals a parameter of a [`FixedQuery`]. Parameter 1 is the id of the store.
pub(in crate::store) fn equals_parameter(column: impl IntoColumnRef, parameter: usize) -> Expr {
    Expr::col(column).eq(Expr::custom_keyword(format!("${parameter}")))
}

/// Returns a query of SeaORM for records of the type `T`, without conditions.
pub(in crate::store) fn find<T: Row>() -> Select<T::Entity> {
    T::Entity::find().select_only().expr(Expr::cust(T::columns()))
}

/// Returns a query of sea-query for records of the type `T`, without conditions.
pub(in crate::store) fn records<T: Row>() -> SelectStatement {
    find::<T>().into_query()
}

/// Returns the query for records whose columns `by` equal the parameters 1, 2, … of a [`FixedQuery`].
pub(in crate::store) fn records_by<T: Row>(by: impl IntoIterator<Item = impl IntoColumnRef>) -> SelectStatement {
    let mut query = records::<T>();
    for (parameter, column) in (1..).zip(by) {
        query.and_where(equals_parameter(column, parameter));
    }
    query
}

#[cfg(test)]
mod tests {
    use sea_orm::{QueryFilter, QuerySelect};

    use super::*;
    use crate::store::entity::stores;

    #[test]
    fn a_limit_is_a_literal_and_other_values_are_bound() {
        for backend in [DbBackend::Sqlite, DbBackend::Postgres] {
            let query =
                stores::Entity::find().select_only().column(stores::Column::Id).filter(stores::Column::CreatedAt.gt(7_i64)).limit(8);
            let sql = select_sql(query, backend).unwrap();
            assert_eq!(sql.as_str(), r#"SELECT "stores"."id" FROM "stores" WHERE "stores"."created_at" > $1 LIMIT 8"#);
            assert_eq!(sql.params().len(), 1);
        }
    }
}

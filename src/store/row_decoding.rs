//! Decoding of result rows, cell by cell, for both database drivers.

use rusqlite::types::FromSql;
use sea_orm::{EntityName, EntityTrait, IdenStatic};
use serde::de::DeserializeOwned;
use tokio_postgres::types::FromSqlOwned;

use crate::{
    domain::time::Timestamp,
    store::error::{Error, Result},
};

/// A record type that is read from a fixed list of columns of its table.
pub(in crate::store) trait Row: Sized {
    /// The table of the record type.
    type Entity: EntityTrait;

    /// Returns the SQL that follows SELECT: the columns that [`Row::decode`] decodes, in their order.
    fn columns() -> &'static str;

    fn decode(cells: &mut Cells<'_>) -> Result<Self>;

    /// Returns the name of the table.
    fn table() -> &'static str {
        Self::Entity::default().table_name()
    }
}

/// Returns the names of columns, separated by commas.
pub(in crate::store) fn column_list(columns: &[impl IdenStatic]) -> String {
    columns.iter().map(IdenStatic::as_str).collect::<Vec<_>>().join(", ")
}

/// Returns the SQL of these columns of an entity, for [`Row::columns`]. The SQL is built once.
macro_rules! columns {
    ($entity:ident: $($column:ident),+) => {{
        static SQL: std::sync::LazyLock<String> =
            std::sync::LazyLock::new(|| $crate::store::row_decoding::column_list(&[$($entity::Column::$column),+]));
        &SQL
    }};
}

pub(in crate::store) use columns;

/// The cells of one row, taken from left to right.
pub(in crate::store) struct Cells<'a> {
    row: AnyRow<'a>,
    at: usize,
}

#[derive(Clone, Copy)]
enum AnyRow<'a> {
    Postgres(&'a tokio_postgres::Row),
    Sqlite(&'a rusqlite::Row<'a>),
}

/// A type that a cell of either database can be decoded to.
pub(in crate::store) trait Cell: FromSql + FromSqlOwned {}

impl<T: FromSql + FromSqlOwned> Cell for T {}

impl<'a> Cells<'a> {
    pub fn postgres(row: &'a tokio_postgres::Row) -> Self {
        Self { row: AnyRow::Postgres(row), at: 0 }
    }

    pub fn sqlite(row: &'a rusqlite::Row<'a>) -> Self {
        Self { row: AnyRow::Sqlite(row), at: 0 }
    }

    pub fn take<T: Cell>(&mut self) -> Result<T> {
        let at = self.at;
        self.at += 1;
        Ok(match self.row {
            AnyRow::Postgres(row) => row.try_get(at)?,
            AnyRow::Sqlite(row) => row.get(at)?,
        })
    }

    pub fn skip(&mut self) {
        self.at += 1;
    }

    pub fn bytes(&mut self) -> Result<Vec<u8>> {
        self.take()
    }

    pub fn flag(&mut self) -> Result<bool> {
        self.take()
    }

    pub fn id<T: From<String>>(&mut self) -> Result<T> {
        Ok(self.take::<String>()?.into())
    }

    pub fn optional_id<T: From<String>>(&mut self) -> Result<Option<T>> {
        Ok(self.take::<Option<String>>()?.map(T::from))
    }

    pub fn time(&mut self) -> Result<Timestamp> {
        Ok(Timestamp::from_millis(self.take()?))
    }

    pub fn optional_time(&mut self) -> Result<Option<Timestamp>> {
        Ok(self.take::<Option<i64>>()?.map(Timestamp::from_millis))
    }

    /// Decodes a column that contains JSON.
    pub fn json<T: DeserializeOwned>(&mut self) -> Result<T> {
        let text: String = self.take()?;
        serde_json::from_str(&text).map_err(|error| Error::Damaged(error.to_string()))
    }

    pub fn optional_json<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        let Some(text) = self.take::<Option<String>>()? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).map_err(|error| Error::Damaged(error.to_string()))
    }
}

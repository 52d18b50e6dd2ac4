//! Rows of record types: decodes the rows that either database driver returns, and makes the rows that are written.

use sea_orm::{EntityName, EntityTrait, IdenStatic};

use crate::{
    domain::ids::StoreId,
    store::{error::Result, stored_values::StoredValue},
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

/// A record type whose records are rows of its table.
pub(in crate::store) trait StoredRecord: Row {
    /// Returns the row of a record. Columns that are no property of the record are not set.
    fn row(&self, store: &StoreId) -> <Self::Entity as EntityTrait>::ActiveModel;
}

/// Implements [`Row`] and [`StoredRecord`] for a record type from one list of its properties. The first properties have the names of their
/// columns. Properties with other names follow after a semicolon, each with its column. The columns must have the same names in Rust and in
/// SQL. With `read` in front, the record type is only read, and gets no [`StoredRecord`].
macro_rules! stored_record {
    (read $record:ident in $table:ident: $first:ident $(, $same:ident)* $(; $($field:ident: $column:ident),+)?) => {
        impl $crate::store::row_decoding::Row for $record {
            type Entity = $table::Entity;

            fn columns() -> &'static str {
                concat!(stringify!($first) $(, ", ", stringify!($same))* $($(, ", ", stringify!($column))+)?)
            }

            fn decode(cells: &mut $crate::store::row_decoding::Cells<'_>) -> $crate::store::Result<Self> {
                Ok(Self { $first: cells.take()?, $($same: cells.take()?,)* $($($field: cells.take()?,)+)? })
            }
        }
    };
    ($record:ident in $table:ident: $first:ident $(, $same:ident)* $(; $($field:ident: $column:ident),+)?) => {
        $crate::store::row_decoding::stored_record!(read $record in $table: $first $(, $same)* $(; $($field: $column),+)?);

        impl $crate::store::row_decoding::StoredRecord for $record {
            fn row(&self, store: &$crate::domain::ids::StoreId) -> $table::ActiveModel {
                use sea_orm::ActiveValue::Set;
                use $crate::store::stored_values::StoredValue;
                let mut row = $table::ActiveModel::default();
                row.store_id = Set(store.to_string());
                row.$first = Set(self.$first.clone().into_cell());
                $(row.$same = Set(self.$same.clone().into_cell());)*
                $($(row.$column = Set(self.$field.clone().into_cell());)+)?
                row
            }
        }
    };
}

pub(in crate::store) use stored_record;

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

impl<'a> Cells<'a> {
    pub fn postgres(row: &'a tokio_postgres::Row) -> Self {
        Self { row: AnyRow::Postgres(row), at: 0 }
    }

    pub fn sqlite(row: &'a rusqlite::Row<'a>) -> Self {
        Self { row: AnyRow::Sqlite(row), at: 0 }
    }

    /// Decodes the next cell.
    pub fn take<T: StoredValue>(&mut self) -> Result<T> {
        let at = self.at;
        self.at += 1;
        T::from_cell(match self.row {
            AnyRow::Postgres(row) => row.try_get(at)?,
            AnyRow::Sqlite(row) => row.get(at)?,
        })
    }

    pub fn skip(&mut self) {
        self.at += 1;
    }
}

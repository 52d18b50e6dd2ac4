//! Query cost, for tests: how much work the database does for a page, or for any statement that reads, counted rather than timed.

use rusqlite::{Connection, StatementStatus, config::DbConfig};
use sea_orm::{ConnectionTrait, DbBackend, Statement};
use serde_json::Value;

use crate::{
    domain::paging::PageRequest,
    store::{
        Db,
        parameterised_sql::{Param, Sql},
        sqlite::connection::bind,
        statement::pages::{PageSource, PagedRow, page_sql},
    },
};

impl Db {
    /// Returns the number of rows that PostgreSQL read for a page, including rows that it skipped; on SQLite the number of steps of its
    /// virtual machine.
    pub(in crate::store) async fn page_cost<T: PagedRow>(&self, source: &PageSource<'_>, conditions: Sql, page: &PageRequest) -> u64 {
        self.query_cost(page_sql::<T>(source, conditions, page, None)).await
    }

    /// Like [`Db::page_cost`], for any statement that reads.
    pub(in crate::store) async fn query_cost(&self, mut sql: Sql) -> u64 {
        if self.backend() == DbBackend::Sqlite {
            let file: Vec<String> = self
                .all(Sql::fixed("PRAGMA database_list"), |cells| {
                    (0..2).for_each(|_| cells.skip());
                    cells.take()
                })
                .await
                .unwrap();
            return steps(&file[0], &sql);
        }
        sql.text = format!("EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, FORMAT JSON) {}", sql.text);
        let statement = Statement::from_sql_and_values(DbBackend::Postgres, &sql.text, sql.values.iter().map(bound));
        let plan = self.connect().await.unwrap().query_one_raw(statement).await.unwrap().unwrap();
        let plan: Value = plan.try_get_by_index(0).unwrap();
        looked_at(&plan[0]["Plan"])
    }
}

fn bound(param: &Param) -> sea_orm::Value {
    match param.clone() {
        Param::Text(text) => text.into(),
        Param::Integer(number) => number.into(),
        Param::Number(number) => number.into(),
        Param::Bytes(bytes) => bytes.into(),
        Param::Flag(flag) => flag.into(),
        Param::Null => None::<String>.into(),
        Param::NoInteger => None::<i64>.into(),
        Param::NoNumber => None::<f64>.into(),
        Param::NoFlag => None::<bool>.into(),
    }
}

fn steps(file: &str, sql: &Sql) -> u64 {
    let connection = Connection::open(file).unwrap();
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).unwrap();
    let mut statement = connection.prepare(&sql.for_sqlite()).unwrap();
    bind(&mut statement, sql.params()).unwrap();
    let mut rows = statement.raw_query();
    while rows.next().unwrap().is_some() {}
    drop(rows);
    u64::try_from(statement.get_status(StatementStatus::VmStep)).unwrap()
}

/// Returns the number of rows that the scans of a plan read.
fn looked_at(node: &Value) -> u64 {
    let number = |name: &str| node[name].as_f64().unwrap_or(0.0);
    // The node of a subquery scan is left out: its rows are already counted at the scans within the subquery.
    let rows = if node["Node Type"].as_str().is_some_and(|kind| kind.contains("Scan") && kind != "Subquery Scan") {
        (number("Actual Rows") + number("Rows Removed by Filter") + number("Rows Removed by Index Recheck")) * number("Actual Loops")
    } else {
        0.0
    };
    rows as u64 + node["Plans"].as_array().into_iter().flatten().map(looked_at).sum::<u64>()
}

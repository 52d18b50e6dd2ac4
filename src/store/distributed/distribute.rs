//! Distributing the tables of a PostgreSQL database over the nodes of a Citus cluster.

use std::time::Duration;

use counterpart_migrations::{LARGE_RECORD_TABLES, RECORD_TABLES, SORTED_LISTS};
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbBackend, Statement, TryGetable};
use tokio::time::sleep;

use crate::store::{Db, Error, Result, entity::tables};

/// The tables that every node has (reference tables): those by which a request finds its store, and `stores`, to which other tables refer.
const REFERENCE: [&str; 4] = ["stores", "api_keys", "api_key_secrets", "grants"];

/// The tables that stay on the coordinator alone. They have few rows, none of which belongs to a store.
#[cfg(test)]
const LOCAL: [&str; 6] = ["server_secrets", "sandbox", "write_probes", "forgotten_changes", "transaction_numbers", "seaql_migrations"];

/// The distributed tables whose primary key is `position`. [`Db::distribute`] adds `store_id` to these keys, since Citus requires that the
/// primary key of a distributed table contains the distribution column.
const NUMBERED: [&str; 9] =
    ["events", "changes", "outbound", "webhook_secrets", "deliveries", "attempts", "audit", "bridge_secrets", "record_changes"];

/// The append-only table: the database refuses to empty it. So the rows that Citus has copied to the nodes also stay on the coordinator's
/// disk. They contain no secrets.
const APPEND_ONLY: &str = "audit";

/// The statement-level triggers that read all rows that a statement changed, and the table of each. Citus does not support such triggers,
/// so row-level triggers with the same names replace them.
const OF_STATEMENTS: [(&str, &str); 4] =
    [("tickets_come", "tickets"), ("tickets_go", "tickets"), ("contacts_come", "contacts"), ("contacts_go", "contacts")];

/// How often, and with which pauses, [`Db::distribute`] checks that no other session uses the database before it refuses.
const SESSION_CHECKS: u32 = 30;
const SESSION_CHECK_PAUSE: Duration = Duration::from_millis(100);

/// Settings of the transaction that distributes the tables.
const SETTINGS: [&str; 4] = [
    // Permits triggers on distributed tables. The triggers here write only rows of the same store, which are on the same node.
    "SET LOCAL citus.enable_unsafe_triggers = on",
    // Citus would otherwise change the shards of a table on several connections, which would not see each other's changes.
    "SET LOCAL citus.multi_shard_modify_mode = 'sequential'",
    "SET LOCAL client_min_messages = warning",
    // The copy of a large table takes longer than any statement of a request may.
    "SET LOCAL statement_timeout = 0",
];

/// The function that begins a write transaction: it sends the id of the coordinator's transaction to the nodes that the transaction uses.
/// It also sends the time-out of locks, which Citus does not take over from the session. The connections for writes ask for generic plans,
/// which Citus cannot make for every statement; so the function sets `plan_cache_mode` back to `auto`.
const BEGIN_WRITE_FUNCTION: &str = "CREATE FUNCTION begin_distributed_write() RETURNS void LANGUAGE plpgsql AS $$BEGIN \
     PERFORM set_config('plan_cache_mode', 'auto', true), set_config('citus.propagate_set_commands', 'local', true); \
     SET LOCAL lock_timeout = '10s'; \
     EXECUTE format('SET LOCAL counterpart.transaction = %L', pg_current_xact_id()::text); END$$";

/// The function that returns, on the node of a row, the id of the coordinator's transaction that writes the row.
const WRITING_TRANSACTION: &str = "CREATE FUNCTION writing_transaction() RETURNS bigint LANGUAGE plpgsql AS $$DECLARE \
     id text := current_setting('counterpart.transaction', true); BEGIN IF COALESCE(id, '') = '' THEN \
     RAISE EXCEPTION 'the transaction does not say which transaction of the coordinator it is part of' \
     USING HINT = 'This database is distributed. Run SELECT begin_distributed_write() first in each transaction that writes.'; \
     END IF; RETURN id::bigint; END$$";

/// Returns the tables whose rows are on the node of their store: those with a column `store_id`, except the reference tables.
fn distributed_tables() -> Vec<&'static str> {
    let of_a_store = tables(DbBackend::Postgres).into_iter().filter(|(_, columns)| columns.contains(&"store_id"));
    of_a_store.map(|(table, _)| table).filter(|table| !REFERENCE.contains(table)).collect()
}

impl Db {
    /// Distributes the tables over the nodes of the cluster. Returns false if they are distributed already. Missing migrations are applied
    /// first. The tables are distributed in one transaction: if it fails, they are as before. After its commit, the rows that Citus has
    /// copied to the nodes are deleted from the coordinator's disk.
    pub async fn distribute(&self) -> Result<bool> {
        if self.backend() != DbBackend::Postgres {
            return Err(Error::Unusable(
                "a SQLite file cannot be distributed; copy it to PostgreSQL first (`counterpart copy`)".to_owned(),
            ));
        }
        if self.is_distributed() {
            return Ok(false);
        }
        self.migrate_up().await?;
        let (connection, tx) = self.begin_migration().await?;
        refuse_unready(&tx, self.postgres_connections().unwrap_or_default()).await?;
        for setting in SETTINGS {
            run(&tx, setting).await?;
        }
        let foreign_keys = foreign_keys(&tx).await?;
        for (table, name, _) in &foreign_keys {
            run(&tx, &format!("ALTER TABLE {table} DROP CONSTRAINT {name}")).await?;
        }
        for table in NUMBERED {
            run(&tx, &format!("ALTER TABLE {table} DROP CONSTRAINT {table}_pkey, ADD PRIMARY KEY (store_id, position)")).await?;
        }
        // The retention of the change log reads it by position, in all stores.
        run(&tx, "CREATE INDEX changes_by_position ON changes (position)").await?;
        for (trigger, table) in OF_STATEMENTS {
            run(&tx, &format!("DROP TRIGGER {trigger} ON {table}")).await?;
        }
        for (table, _, _) in small_record_tables() {
            for event in ["insert", "update", "delete"] {
                run(&tx, &format!("DROP TRIGGER {table}_recorded_on_{event} ON {table}")).await?;
            }
            run(&tx, &format!("DROP FUNCTION {table}_recorded()")).await?;
        }
        run(&tx, "DROP TRIGGER change_feeds_activated ON change_feeds").await?;
        for table in REFERENCE {
            run(&tx, &format!("SELECT create_reference_table('{table}')")).await?;
        }
        let distributed = distributed_tables();
        for table in &distributed {
            tracing::info!(table, "distributing");
            run(&tx, &format!("SELECT create_distributed_table('{table}', 'store_id')")).await?;
        }
        for (table, name, definition) in &foreign_keys {
            run(&tx, &format!("ALTER TABLE {table} ADD CONSTRAINT {name} {definition}")).await?;
        }
        for statement in functions_and_triggers() {
            run(&tx, &statement).await?;
        }
        tx.commit().await?;
        // Citus has copied the rows to the nodes. The original rows still use space on the coordinator's disk, where no statement sees
        // them. So they are deleted, except those of the append-only table.
        for table in distributed.iter().chain(&REFERENCE).filter(|table| **table != APPEND_ONLY) {
            let delete = format!("SELECT truncate_local_data_after_distributing_table('{table}')");
            if let Err(error) = connection.execute_unprepared(&delete).await {
                tracing::warn!(table, %error, "the former rows of a table stay on the disk of the coordinator");
            }
        }
        connection.close().await?;
        Ok(true)
    }
}

/// Returns the tables whose changes are recorded for the change feed by statement-level triggers, until the database is distributed: table,
/// kind of record, and the column with the record's id.
fn small_record_tables() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    RECORD_TABLES.into_iter().filter(|(table, ..)| !LARGE_RECORD_TABLES.contains(table))
}

async fn run(tx: &DatabaseTransaction, statement: &str) -> Result<()> {
    tx.execute_unprepared(statement).await?;
    Ok(())
}

/// Returns the first column of the first row of a query.
async fn value<T: TryGetable>(tx: &DatabaseTransaction, query: &str) -> Result<Option<T>> {
    let row = tx.query_one_raw(Statement::from_string(DbBackend::Postgres, query)).await?;
    Ok(row.map(|row| row.try_get_by_index(0)).transpose()?)
}

/// Refuses a database without Citus, a cluster that has no coordinator or no other node, and a database that other sessions use. `own` is
/// the number of sessions of this process, apart from that of the transaction.
async fn refuse_unready(tx: &DatabaseTransaction, own: u64) -> Result<()> {
    let refused = |reason: &str| Err(Error::Unusable(reason.to_owned()));
    if value::<i32>(tx, "SELECT 1 FROM pg_extension WHERE extname = 'citus'").await?.is_none() {
        return refused("the extension Citus is missing; run `CREATE EXTENSION citus` in this database on every node first");
    }
    if value::<i32>(tx, "SELECT 1 FROM pg_dist_node WHERE groupid = 0").await?.is_none() {
        return refused("the cluster does not know its coordinator; run `SELECT citus_set_coordinator_host('HOST', PORT)` first");
    }
    if value::<i32>(tx, "SELECT 1 FROM pg_dist_node WHERE shouldhaveshards AND isactive AND noderole = 'primary'").await?.is_none() {
        return refused("the cluster has no node for stores; run `SELECT citus_add_node('HOST', PORT)` for each node first");
    }
    let sessions = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() \
                    AND backend_type = 'client backend' AND application_name NOT LIKE 'citus%'";
    let mut others = 0;
    // The sessions of a process that has just ended last a moment longer.
    for _ in 0..SESSION_CHECKS {
        // PostgreSQL caches the list of sessions for the rest of the transaction. This call empties the cache.
        run(tx, "SELECT pg_stat_clear_snapshot()").await?;
        others = value::<i64>(tx, sessions).await?.unwrap_or_default().saturating_sub_unsigned(own);
        if others <= 0 {
            return Ok(());
        }
        sleep(SESSION_CHECK_PAUSE).await;
    }
    // This process's own sessions are among those listed: PostgreSQL does not tell them apart.
    let listed =
        sessions.replace("COUNT(*)", "string_agg(concat_ws(' ', pid, usename, client_addr, application_name, left(query, 80)), '; ')");
    let listed = value::<Option<String>>(tx, &listed).await?.flatten().unwrap_or_default();
    refused(&format!(
        "other sessions use the database ({others} besides the {own} of this command); stop every process of counterpart, and other \
         programs, first. The sessions: {listed}"
    ))
}

/// Returns the foreign keys of all tables: table, name and definition.
async fn foreign_keys(tx: &DatabaseTransaction) -> Result<Vec<(String, String, String)>> {
    let query = "SELECT conrelid::regclass::text, quote_ident(conname), pg_get_constraintdef(oid) FROM pg_constraint \
                 WHERE contype = 'f' AND connamespace = current_schema()::regnamespace ORDER BY conrelid::regclass::text, conname";
    let rows = tx.query_all_raw(Statement::from_string(DbBackend::Postgres, query)).await?;
    let read = |row: &sea_orm::QueryResult| Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?, row.try_get_by_index(2)?));
    rows.iter().map(read).collect()
}

/// Returns the statements that create row-level triggers in place of the statement-level ones, and the functions that use transaction ids.
fn functions_and_triggers() -> Vec<String> {
    let state = |row: &str| {
        format!("CASE WHEN {row}.is_open THEN 'tickets.open' ELSE 'tickets.closed' END || CASE WHEN {row}.is_spam THEN '.spam' ELSE '' END")
    };
    let count = |function: &str, row: &str, name: &str, value: i64| {
        format!(
            "CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN \
             INSERT INTO totals (store_id, name, value) VALUES ({row}.store_id, {name}, {value}); RETURN NULL; END$$"
        )
    };
    let mut statements = vec![
        BEGIN_WRITE_FUNCTION.to_owned(),
        WRITING_TRANSACTION.to_owned(),
        count("tickets_come", "NEW", &state("NEW"), 1),
        count("tickets_go", "OLD", &state("OLD"), -1),
        count("contacts_come", "NEW", "'contacts'", 1),
        count("contacts_go", "OLD", "'contacts'", -1),
    ];
    for (trigger, table) in OF_STATEMENTS {
        let event = if trigger.ends_with("come") { "INSERT" } else { "DELETE" };
        statements.push(format!("CREATE TRIGGER {trigger} AFTER {event} ON {table} FOR EACH ROW EXECUTE FUNCTION {trigger}()"));
    }
    statements.push(
        "CREATE FUNCTION placed_on_insert() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.placed_by := writing_transaction(); \
         RETURN NEW; END$$"
            .to_owned(),
    );
    // `record_changes_of` enables the triggers of a table that record changes. Citus alters only one trigger per statement, and only if the
    // transaction permits triggers on distributed tables.
    statements.push(
        "CREATE OR REPLACE FUNCTION record_changes_of(recorded text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER \
         SET search_path FROM CURRENT AS $$DECLARE event text; BEGIN \
         PERFORM set_config('citus.enable_unsafe_triggers', 'on', true); FOREACH event IN ARRAY ARRAY['insert', 'update', 'delete'] LOOP \
         EXECUTE format('ALTER TABLE %I ENABLE TRIGGER %I', recorded, recorded || '_recorded_on_' || event); END LOOP; END$$"
            .to_owned(),
    );
    for (table, sort) in SORTED_LISTS {
        statements.push(format!(
            "CREATE OR REPLACE FUNCTION {table}_moved() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN \
             NEW.placed_by := writing_transaction(); IF OLD.placed_by <> NEW.placed_by THEN \
             INSERT INTO former_places (store_id, list, left_by, row_id, place_at, placed_by, left_at) VALUES (NEW.store_id, '{table}', \
             NEW.placed_by, NEW.id, OLD.{sort}, OLD.placed_by, (date_part('epoch', now()) * 1000)::bigint); END IF; RETURN NEW; END$$"
        ));
        statements.push(format!("CREATE TRIGGER {table}_placed BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION placed_on_insert()"));
    }
    statements.push(
        "CREATE FUNCTION small_row_recorded() RETURNS trigger LANGUAGE plpgsql AS $$DECLARE changed jsonb; BEGIN \
         IF TG_OP = 'DELETE' THEN changed := to_jsonb(OLD); ELSE changed := to_jsonb(NEW); END IF; \
         IF EXISTS (SELECT 1 FROM change_feeds f WHERE f.store_id = changed->>'store_id' AND f.active) THEN \
         INSERT INTO record_changes (store_id, kind, record_id) VALUES (changed->>'store_id', TG_ARGV[0], changed->>TG_ARGV[1]); END IF; \
         RETURN NULL; END$$"
            .to_owned(),
    );
    for (table, kind, id) in small_record_tables() {
        statements.push(format!(
            "CREATE TRIGGER {table}_recorded AFTER INSERT OR UPDATE OR DELETE ON {table} FOR EACH ROW \
             EXECUTE FUNCTION small_row_recorded('{kind}', '{id}')"
        ));
    }
    statements
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::store::{fixture::Fixture, parameterised_sql::Sql};

    /// A table without a column `store_id` stays on the coordinator, or is in `REFERENCE`.
    #[tokio::test]
    async fn each_table_is_distributed_a_reference_table_or_local() {
        let fixture = Fixture::new().await;
        if fixture.db.backend() != DbBackend::Postgres {
            return;
        }
        let migrated = "SELECT table_name::text FROM information_schema.tables WHERE table_schema = current_schema()";
        let migrated: BTreeSet<String> = fixture.db.all(Sql::fixed(migrated), |cells| cells.take()).await.unwrap().into_iter().collect();
        let distributed = distributed_tables();
        let assigned: BTreeSet<String> = distributed.iter().chain(&REFERENCE).chain(&LOCAL).map(|table| (*table).to_owned()).collect();
        assert_eq!(assigned.len(), distributed.len() + REFERENCE.len() + LOCAL.len(), "a table is listed twice");
        assert_eq!(
            migrated.symmetric_difference(&assigned).collect::<Vec<_>>(),
            [""; 0],
            "tables to be added to, or taken from, `LOCAL` or `REFERENCE`"
        );
    }
}

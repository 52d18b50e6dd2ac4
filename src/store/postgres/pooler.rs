//! Detection of a connection pooler in transaction mode, such as PgBouncer, between this program and PostgreSQL.
//!
//! Such a pooler lends a session of the server to a connection for one transaction at a time. So a session may have the named statements of
//! other connections, and lacks those that a connection prepared in another session. This program then prepares each statement without a
//! name, and SeaORM's connections begin each transaction by discarding named statements.
//!
//! The pooler also drops the settings that a connection asks for at its start. The operator has to give them to the pooler; without them
//! this program does not start.

use crate::store::{
    Error, Result,
    postgres::{
        connection::{Connection, RowLength},
        server::Server,
    },
    sql::Sql,
};

/// The statements that read and set the mark of a session: a setting which shows that a connection of this program has used the session.
const READ_MARK: &str = "SELECT current_setting('counterpart.session', true)";
const SET_MARK: &str = "SET counterpart.session = 'used'";

/// The settings that every session must have: name and value, as PostgreSQL shows it.
pub(in crate::store) const SESSION_SETTINGS: [(&str, &str); 3] = [
    ("lock_timeout", "10s"),
    // No JIT: compiling the statement of a page takes far longer than reading the few thousand rows that a page reads at most.
    ("jit", "off"),
    // Writes lock the rows that they read, so READ COMMITTED is enough. The default of a database may be stricter: then a write that
    // waited for a lock would fail.
    ("default_transaction_isolation", "read committed"),
];

/// Returns whether two connections share a session of the server: then a pooler in transaction mode lends it to them in turn. A new session
/// has no mark. If sessions are shared, the second connection sees the mark of the first, or the first sees the mark of an earlier
/// connection.
pub(in crate::store) async fn shares_sessions(server: &Server) -> Result<bool> {
    let first = server.connect(RowLength::Short).await??;
    let mut shares = is_marked(&first).await?;
    if !shares {
        first.command(SET_MARK).await?;
        let second = server.connect(RowLength::Short).await??;
        shares = is_marked(&second).await?;
        second.close().await;
    }
    if shares {
        require_settings(&first).await?;
    }
    first.close().await;
    Ok(shares)
}

async fn is_marked(connection: &Connection) -> Result<bool> {
    let rows = connection.rows_unnamed(&Sql::fixed(READ_MARK)).await?;
    let mark: Option<String> = rows.first().map(|row| row.try_get(0)).transpose()?.flatten();
    Ok(mark.is_some_and(|mark| !mark.is_empty()))
}

/// Fails unless a session behind the pooler has the settings that every session must have.
async fn require_settings(connection: &Connection) -> Result<()> {
    for (name, value) in SESSION_SETTINGS {
        let rows = connection.rows_unnamed(&Sql::fixed(&format!("SHOW {name}"))).await?;
        let found: Option<String> = rows.first().map(|row| row.try_get(0)).transpose()?;
        if found.as_deref() != Some(value) {
            let commands: Vec<String> = SESSION_SETTINGS.iter().map(|(name, value)| format!("SET {name} = ''{value}''")).collect();
            return Err(Error::Unavailable(format!(
                "a connection pooler in transaction mode is in front of PostgreSQL, and its sessions have `{name}` = `{}`, not `{value}`; \
                 for PgBouncer, add to the database in pgbouncer.ini: connect_query='{}'",
                found.unwrap_or_default(),
                commands.join("; ")
            )));
        }
    }
    Ok(())
}

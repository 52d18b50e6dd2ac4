//! Detection of a connection pooler, such as PgBouncer, between this program and PostgreSQL.
//!
//! A connection asks for settings when it is opened, among them [`MARK`]. A pooler drops them, since it opens the sessions of the server
//! itself. So a session without the mark is a pooler's. In transaction mode a pooler lends a session to a connection for one transaction at
//! a time. So the next transaction of a connection may run in another session: this session lacks the named statements that the connection
//! has prepared, and may have those of other connections. This program therefore prepares each statement without a name, and SeaORM's
//! connections begin a transaction by discarding named statements.
//!
//! The operator has to give the other settings ([`SESSION_SETTINGS`]) to the pooler; the start fails if they are missing.

use crate::store::{Error, Result, parameterised_sql::Sql, postgres::pipelined_connection::Connection};

/// The settings that every session must have: name and value, as PostgreSQL shows it.
pub(in crate::store) const SESSION_SETTINGS: [(&str, &str); 3] = [
    ("lock_timeout", "10s"),
    // No JIT: compiling the statement of a page takes far longer than reading the few thousand rows that a page reads at most.
    ("jit", "off"),
    // Writes lock the rows that they read, so READ COMMITTED is enough. The default of a database may be stricter: then a write that
    // waited for a lock would fail.
    ("default_transaction_isolation", "read committed"),
];

/// A setting without effect, and its value. A session has it only if the connection's settings reached PostgreSQL.
pub(in crate::store) const MARK: (&str, &str) = ("counterpart.connection", "direct");

/// Returns whether the session of a connection belongs to a pooler. Fails if a pooler's session lacks one of [`SESSION_SETTINGS`].
pub(in crate::store) async fn is_pooled(connection: &Connection) -> Result<bool> {
    if shown(connection, MARK.0).await?.as_deref() == Some(MARK.1) {
        return Ok(false);
    }
    for (name, value) in SESSION_SETTINGS {
        let found = shown(connection, name).await?;
        if found.as_deref() != Some(value) {
            let commands: Vec<String> = SESSION_SETTINGS.iter().map(|(name, value)| format!("SET {name} = ''{value}''")).collect();
            return Err(Error::Unavailable(format!(
                "a connection pooler is in front of PostgreSQL, and its sessions have `{name}` = `{}`, not `{value}`; for PgBouncer, add to \
                 the database in pgbouncer.ini: connect_query='{}'",
                found.unwrap_or_default(),
                commands.join("; ")
            )));
        }
    }
    Ok(true)
}

/// Returns the value of a setting in the session of a connection.
pub(super) async fn shown(connection: &Connection, name: &str) -> Result<Option<String>> {
    let rows = connection.rows_unnamed(&Sql::fixed(&format!("SELECT current_setting('{name}', true)"))).await?;
    Ok(rows.first().map(|row| row.try_get(0)).transpose()?.flatten())
}

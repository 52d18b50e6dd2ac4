//! Stale files: refuses to open a database if the write-ahead log (WAL) next to it belongs to another database, or if a restore of the
//! database did not finish.
//!
//! The first page of a database contains its application id, a number that programs may choose; each copy that this program makes of a
//! database gets a new one. A WAL can contain a newer version of the first page. If that version has another application id than the file,
//! the WAL belongs to another file. Once a server has started, the WAL contains the first page: the server writes this page at its start,
//! at each check of the database for `/readyz`, and with every write that makes the file longer.

use std::path::Path;

use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use rusqlite::{Connection, OpenFlags, config::DbConfig};

use crate::store::{
    Error, Result,
    sqlite::connection::{self, LOG, beside},
};

/// The suffix of the file that a restore prepares next to a database, in order to replace the database by it.
pub(in crate::store) const RESTORING: &str = ".restoring";

/// Returns an error if a restore of the database did not finish.
pub(in crate::store) fn refuse_half_restored(database: &Path) -> Result<()> {
    let restoring = beside(database, RESTORING);
    if !restoring.exists() {
        return Ok(());
    }
    let (database, restoring) = (database.display(), restoring.display());
    Err(Error::Unusable(format!("`{database}` was being restored, which did not end; run `counterpart restore {restoring}`")))
}

/// Returns the application id of an open database.
pub(in crate::store) fn application_id(connection: &Connection) -> Result<i32> {
    Ok(connection.query_row("PRAGMA application_id", (), |row| row.get(0))?)
}

/// Returns an error if the WAL next to a database belongs to another database. Changes neither file.
pub(in crate::store) fn refuse_foreign_log(path: &Path) -> Result<()> {
    let log = beside(path, LOG);
    if !holds_something(&log) || !holds_something(path) {
        return Ok(());
    }
    // A file that cannot be read is no error here: SQLite reports it when the database is opened.
    let ids =
        open_ignoring_wal(path).and_then(|file| application_id(&file)).and_then(|own| Ok((own, application_id(&open_keeping_wal(path)?)?)));
    match ids {
        Ok((own, of_log)) if own != of_log => Err(Error::Unusable(format!(
            "`{log}` does not belong to `{file}`: a server that was killed left it there, and another file was put in the place of its \
             own since. Move `{log}` away if `{file}` is what you want; to put a back-up in the place of a database, use `counterpart restore`",
            log = log.display(),
            file = path.display()
        ))),
        _ => Ok(()),
    }
}

pub(in crate::store) fn holds_something(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.len() > 0)
}

/// Opens a read-only connection that sees the file without its WAL. SQLite takes no locks for this connection.
pub(in crate::store) fn open_ignoring_wal(path: &Path) -> Result<Connection> {
    let path = percent_encode(path.as_os_str().as_encoded_bytes(), NON_ALPHANUMERIC);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Ok(Connection::open_with_flags(format!("file:{path}?immutable=1"), flags)?)
}

/// Opens a connection that sees the file with its WAL, and runs no checkpoint when it is closed.
pub(in crate::store) fn open_keeping_wal(path: &Path) -> Result<Connection> {
    let connection = connection::open(path)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

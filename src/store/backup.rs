//! Back-ups of a SQLite database: making one beside a running server, and putting one in the place of a database.
//!
//! A restore is prepared in `FILE.partial` and `FILE.restoring` beside the database. The second is whole and checked, and stands until it
//! has taken the database's place: a process that finds it refuses the database, so a restore that was interrupted is noticed.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OptionalExtension};
use rustix::fs::{FlockOperation, fcntl_lock};

use crate::{
    domain::time::Timestamp,
    store::{
        self, Error,
        migrate::{RECORD, refuse_newer},
        sqlite::{
            connection::{INDEX, LOG, beside},
            copy::{self, copy},
            stale::RESTORING,
        },
    },
};

pub use copy::Progress;

const PARTIAL: &str = ".partial";

/// Why there is no back-up, or no restored database.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("`{}` {reason}", .path.display())]
    File { path: PathBuf, reason: String },
    #[error(transparent)]
    Store(#[from] Error),
}

type Result<T> = std::result::Result<T, Failure>;

/// What a restore did.
#[derive(Debug)]
pub struct Restored {
    /// Where the database is now that stood there before.
    pub former: Option<PathBuf>,
}

/// Copies the database into a file that is not there yet, consistent as of one moment, and checks the copy.
pub fn back_up(database: &Path, to: &Path, progress: Option<Progress<'_>>) -> Result<()> {
    if to.symlink_metadata().is_ok() {
        return Err(wrong(to, "is there already; name a new file"));
    }
    let file = tempfile::NamedTempFile::new_in(folder(to)).map_err(|error| failed(to, &error))?;
    copy(database, file.path(), progress).and_then(|()| refuse_unsound(file.path())).map_err(|error| of(database, error))?;
    file.persist_noclobber(to).map_err(|error| failed(to, &error.error))?;
    sync_folder(to)
}

/// Puts a copy of a back-up in the place of the database, which is kept under another name, with its log. Refuses a database that a
/// process has open, and a back-up that is damaged, of another program or of a newer version.
pub fn restore(backup: &Path, database: &Path, now: Timestamp, progress: Option<Progress<'_>>) -> Result<Restored> {
    let same = |a: &Path, b: &Path| fs::canonicalize(a).is_ok_and(|a| fs::canonicalize(b).is_ok_and(|b| a == b));
    if same(backup, database) {
        return Err(wrong(backup, "is the database itself"));
    }
    File::open(backup).map_err(|error| failed(backup, &error))?;
    // Held until the end: no process can open the database meanwhile.
    let _lock = lock(database)?;
    let (partial, restoring) = (beside(database, PARTIAL), beside(database, RESTORING));
    for leftover in ["", LOG, INDEX] {
        remove(&beside(&partial, leftover))?;
    }
    copy(backup, &partial, progress).and_then(|()| refuse_unsound(&partial)).map_err(|error| of(backup, error))?;
    let former = keep_former(database, now)?;
    fs::rename(&partial, &restoring).map_err(|error| failed(&restoring, &error))?;
    sync_folder(database)?;
    for of_former in [LOG, INDEX] {
        remove(&beside(database, of_former))?;
    }
    fs::rename(&restoring, database).map_err(|error| failed(database, &error))?;
    sync_folder(database)?;
    Ok(Restored { former })
}

/// The database file, locked against every other process; nothing where there is none. SQLite holds a lock on a file as long as it has
/// it open with a write-ahead log.
fn lock(database: &Path) -> Result<Option<File>> {
    let file = match File::options().read(true).write(true).open(database) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(|error| failed(database, &error))?,
    };
    match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => Err(wrong(database, "is open in another process; stop it first")),
        Err(error) => Err(failed(database, &error.into())),
    }
}

/// Gives the database and its log second names, under which they stay.
fn keep_former(database: &Path, now: Timestamp) -> Result<Option<PathBuf>> {
    if !database.exists() {
        return Ok(None);
    }
    // Colons would have to be quoted in a shell.
    let former = beside(database, &format!(".before-{}", now.to_string().replace(':', "-")));
    for suffix in ["", LOG] {
        let (from, to) = (beside(database, suffix), beside(&former, suffix));
        if from.exists() {
            fs::hard_link(&from, &to).map_err(|error| failed(&to, &error))?;
        }
    }
    Ok(Some(former))
}

/// Refuses a copy that is damaged, and one that is no database of this program or one of a newer version.
fn refuse_unsound(copy: &Path) -> store::Result<()> {
    let file = Connection::open(copy)?;
    let found: String = file.query_row("PRAGMA integrity_check(1)", (), |row| row.get(0))?;
    if found != "ok" {
        return Err(Error::Unusable(format!("it is damaged: {found}")));
    }
    let record = file.query_row("SELECT 1 FROM sqlite_schema WHERE name = ?", [RECORD], |_| Ok(())).optional()?;
    record.ok_or_else(|| Error::Unusable("it is no database of counterpart".to_owned()))?;
    let mut statement = file.prepare(&format!("SELECT version FROM {RECORD} ORDER BY version"))?;
    let applied = statement.query_map((), |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    refuse_newer(&applied)
}

/// A failure with the name of the file that it is about.
fn of(path: &Path, error: Error) -> Failure {
    match error {
        Error::Unusable(reason) => wrong(path, format!("cannot be used: {reason}")),
        error => Failure::Store(error),
    }
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(path, &error)),
        _ => Ok(()),
    }
}

/// Makes the names in the folder of a file durable.
fn sync_folder(path: &Path) -> Result<()> {
    File::open(folder(path)).and_then(|folder| folder.sync_all()).map_err(|error| failed(path, &error))
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn wrong(path: &Path, reason: impl Into<String>) -> Failure {
    Failure::File { path: path.to_owned(), reason: reason.into() }
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    wrong(path, format!("cannot be used: {error}"))
}

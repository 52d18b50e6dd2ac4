//! Back-up and restore of a SQLite database. A back-up can be made while a server runs; a restore replaces the database.
//!
//! A restore copies the back-up into `FILE.partial`, checks the copy, and renames the copy to `FILE.restoring`. If the restore is
//! interrupted before `FILE.restoring` has replaced `FILE`, the command `counterpart restore FILE.restoring` completes the restore. Until
//! then every other command refuses the database.

use std::{
    fs::{self, File, Metadata},
    io,
    os::unix::fs::{MetadataExt, chown},
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OptionalExtension};
use rustix::fs::{FlockOperation, fcntl_lock};

use crate::{
    domain::time::Timestamp,
    store::{
        self, Error,
        migrate::{MIGRATIONS_TABLE, refuse_newer},
        sqlite::{
            connection::{INDEX, LOG, beside},
            foreign_wal_check::{RESTORING, refuse_half_restored},
            snapshot_copy::{self, CopySource, copy},
        },
    },
};

pub use snapshot_copy::Progress;

const PARTIAL: &str = ".partial";

/// The reason why a back-up or a restore failed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("`{}` {reason}", .path.display())]
    File { path: PathBuf, reason: String },
    #[error(transparent)]
    Store(#[from] Error),
}

type Result<T> = std::result::Result<T, BackupError>;

/// The result of a restore.
#[derive(Debug)]
pub struct Restored {
    /// The path under which the replaced database is kept. `None` if there was no database.
    pub former: Option<PathBuf>,
}

/// The path of an unfinished copy. When the value is dropped, the copy's files are deleted.
struct Partial(PathBuf);

impl Partial {
    /// Returns the path at which a copy is prepared before it is moved to `path`. Deletes the files that an interrupted process may have
    /// left there.
    fn of(path: &Path) -> Result<Self> {
        let partial = Self(beside(path, PARTIAL));
        for suffix in ["", LOG, INDEX, "-journal"] {
            remove(&beside(&partial.0, suffix))?;
        }
        Ok(partial)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        for suffix in ["", LOG, INDEX, "-journal"] {
            _ = fs::remove_file(beside(&self.0, suffix));
        }
    }
}

/// Copies the database into the new file `to`, and checks the copy. The copy is a consistent snapshot. Fails if `to` exists.
pub fn back_up(database: &Path, to: &Path, progress: Option<Progress<'_>>) -> Result<()> {
    if to.symlink_metadata().is_ok() {
        return Err(backup_error(to, "is there already; name a new file"));
    }
    let database = resolved(database);
    refuse_half_restored(&database)?;
    let partial = Partial::of(to)?;
    copy(&database, CopySource::Live, &partial.0, progress).map_err(|error| uncopied(&database, error))?;
    refuse_unsound(&partial.0).map_err(|error| uncopied(&database, error))?;
    // The copy gets the name `to` by a hard link, not by a rename: a rename would replace a file that was created at `to` after the check
    // above.
    fs::hard_link(&partial.0, to).map_err(|error| io_error(to, &error))?;
    sync_folder(to)
}

/// Replaces the database by a copy of a back-up. The former database and its WAL are kept under another name. Refuses a database that a
/// process has open, and a back-up that is damaged, belongs to another program or was made by a newer version.
pub fn restore(backup: &Path, database: &Path, progress: Option<Progress<'_>>) -> Result<Restored> {
    let found = fs::metadata(backup).map_err(|error| io_error(backup, &error))?;
    let database = resolved(database);
    let restoring = beside(&database, RESTORING);
    if is_same(&found, &database) {
        return Err(backup_error(backup, "is the database itself"));
    }
    // The lock is held until the end of this function, so that no process opens the former database before it is replaced.
    let lock = lock(&database)?;
    let restored = restore_locked(backup, &found, &database, &restoring, &lock, progress);
    if restored.is_err() && lock.metadata().is_ok_and(|found| found.len() == 0) {
        // An empty file is no database. Usually the call of `lock` above has created the file, so it is deleted again.
        remove(&database)?;
    }
    restored
}

fn restore_locked(
    backup: &Path,
    found: &Metadata,
    database: &Path,
    restoring: &Path,
    lock: &File,
    progress: Option<Progress<'_>>,
) -> Result<Restored> {
    if !is_same(found, restoring) {
        refuse_half_restored(database)?;
        let partial = Partial::of(database)?;
        copy(backup, CopySource::AtRest, &partial.0, progress).map_err(|error| uncopied(backup, error))?;
        refuse_unsound(&partial.0).map_err(|error| uncopied(backup, error))?;
        own_as(&partial.0, &lock.metadata().map_err(|error| io_error(database, &error))?)?;
        fs::rename(&partial.0, restoring).map_err(|error| io_error(restoring, &error))?;
        sync_folder(database)?;
    }
    let former = keep_former(database, restoring)?;
    sync_folder(database)?;
    for of_former in [LOG, INDEX] {
        remove(&beside(database, of_former))?;
    }
    fs::rename(restoring, database).map_err(|error| io_error(database, &error))?;
    sync_folder(database)?;
    Ok(Restored { former })
}

/// Returns the path of a file with symbolic links resolved: SQLite's WAL is next to the file itself, not next to a link to it.
fn resolved(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn is_same(found: &Metadata, path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|other| (other.dev(), other.ino()) == (found.dev(), found.ino()))
}

/// Opens the database file and locks it against every other process. Creates an empty file if there is none. Fails if another process has
/// the database open: SQLite holds a lock on a file as long as it has the file open in WAL mode.
fn lock(database: &Path) -> Result<File> {
    let file = File::options().read(true).write(true).create(true).truncate(false).open(database);
    let file = file.map_err(|error| io_error(database, &error))?;
    match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) if fs::metadata(database).is_ok_and(|found| file.metadata().is_ok_and(|open| open.ino() == found.ino())) => Ok(file),
        // Here `Ok` means that the locked file is no longer at this path: another restore has replaced the file after this process opened
        // it.
        Ok(()) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => {
            Err(backup_error(database, "is open in another process; stop it first"))
        }
        Err(error) => Err(io_error(database, &error.into())),
    }
}

/// Gives a copy the mode and the owner of the file that it will replace. Does nothing if that file is empty: then there was no database.
fn own_as(copy: &Path, former: &Metadata) -> Result<()> {
    let made = fs::metadata(copy).map_err(|error| io_error(copy, &error))?;
    if former.len() == 0 {
        return Ok(());
    }
    fs::set_permissions(copy, former.permissions()).map_err(|error| io_error(copy, &error))?;
    if (made.uid(), made.gid()) != (former.uid(), former.gid()) {
        chown(copy, Some(former.uid()), Some(former.gid()))
            .map_err(|error| backup_error(copy, format!("cannot be given to the owner of the database: {error}")))?;
    }
    Ok(())
}

/// Gives the database file and its WAL a second name with hard links, so that both files remain when the restore replaces the database.
/// Returns the second name, or `None` if there is no database to keep. The name contains the time at which the restore copied the back-up,
/// so a continued restore uses the same name.
fn keep_former(database: &Path, restoring: &Path) -> Result<Option<PathBuf>> {
    if !fs::metadata(database).is_ok_and(|found| found.len() > 0) {
        return Ok(None);
    }
    let copied = fs::metadata(restoring).map_err(|error| io_error(restoring, &error))?;
    let at = Timestamp::from_millis(copied.mtime() * 1000).to_string();
    // Colons are replaced, since programs such as scp take the text before a colon for a host name.
    let former = beside(database, &format!(".before-{}", at.replace(':', "-")));
    for suffix in ["", LOG] {
        match fs::hard_link(beside(database, suffix), beside(&former, suffix)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && suffix == LOG => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            linked => linked.map_err(|error| io_error(&beside(&former, suffix), &error))?,
        }
    }
    Ok(Some(former))
}

/// Refuses a copy that is damaged, is no database of this program, or was made by a newer version.
fn refuse_unsound(copy: &Path) -> store::Result<()> {
    let file = Connection::open(copy)?;
    let found: String = file.query_row("PRAGMA integrity_check(1)", (), |row| row.get(0))?;
    if found != "ok" {
        return Err(Error::Unusable(format!("it is damaged: {found}")));
    }
    let record = file.query_row("SELECT 1 FROM sqlite_schema WHERE name = ?", [MIGRATIONS_TABLE], |_| Ok(())).optional()?;
    record.ok_or_else(|| Error::Unusable("it is no database of counterpart".to_owned()))?;
    let mut statement = file.prepare(&format!("SELECT version FROM {MIGRATIONS_TABLE} ORDER BY version"))?;
    let applied = statement.query_map((), |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    refuse_newer(&applied)
}

/// Returns the error for a file that could not be copied.
fn uncopied(path: &Path, error: Error) -> BackupError {
    match error {
        Error::Unusable(reason) => backup_error(path, format!("cannot be used: {reason}")),
        Error::Failing(reason) => backup_error(path, format!("cannot be copied: {reason}")),
        error => backup_error(path, format!("cannot be copied: {error}")),
    }
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error(path, &error)),
        _ => Ok(()),
    }
}

/// Syncs the folder of a file to disk, so that files renamed or created in it survive a crash.
fn sync_folder(path: &Path) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| io_error(path, &error))
}

fn backup_error(path: &Path, reason: impl Into<String>) -> BackupError {
    BackupError::File { path: path.to_owned(), reason: reason.into() }
}

fn io_error(path: &Path, error: &io::Error) -> BackupError {
    backup_error(path, format!("cannot be used: {error}"))
}

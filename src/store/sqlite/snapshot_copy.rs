//! Snapshot copies of a SQLite database. Other connections may read and write it during the copy. Also copies a file at rest, such as a
//! backup.
//!
//! Each copy has a new application id. By this id, [`foreign_wal_check`](crate::store::sqlite::foreign_wal_check) recognises a write-ahead
//! log (WAL) that belongs to another file.

use std::path::Path;

use rusqlite::{
    Connection,
    backup::{Backup, StepResult},
};

use crate::store::{
    Error, Result,
    sqlite::{
        connection::{self, LOG, beside},
        foreign_wal_check::{holds_something, open_ignoring_wal, open_keeping_wal, refuse_foreign_log},
    },
};

/// The number of pages that are copied between two calls of the progress callback.
const STEP: i32 = 4096;

/// A progress callback: called with the number of pages copied so far, and the number of all pages.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Send + Sync);

/// Whether the database that is copied may be in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum CopySource {
    /// A database that other connections may open and write during the copy.
    Live,
    /// A file that no process writes. Its folder may be read-only.
    AtRest,
}

/// Copies a database, including its WAL, into a file that is empty or does not exist. The whole copy is made in one read transaction.
pub(in crate::store) fn copy(from: &Path, source: CopySource, to: &Path, progress: Option<Progress<'_>>) -> Result<()> {
    refuse_foreign_log(from)?;
    let source = match source {
        CopySource::Live => connection::open(from)?,
        CopySource::AtRest if holds_something(&beside(from, LOG)) => open_keeping_wal(from)?,
        CopySource::AtRest => open_ignoring_wal(from)?,
    };
    let mut target = Connection::open(to)?;
    source.execute_batch("BEGIN; SELECT 1 FROM sqlite_schema")?;
    {
        let backup = Backup::new(&source, &mut target)?;
        loop {
            let step = backup.step(STEP)?;
            let pages = backup.progress();
            if let Some(progress) = progress {
                let count = |pages: i32| u64::try_from(pages).unwrap_or_default();
                progress(count(pages.pagecount - pages.remaining), count(pages.pagecount));
            }
            match step {
                StepResult::Done => break,
                StepResult::More => {}
                _ => return Err(Error::Busy),
            }
        }
    }
    source.execute_batch("COMMIT")?;
    let mut id = [0; 4];
    getrandom::fill(&mut id).map_err(|error| Error::Failing(format!("the system has no random bytes: {error}")))?;
    // If the target has a WAL, this change is written into it. `close` then copies the WAL into the target and removes it.
    target.execute_batch(&format!("PRAGMA application_id = {}", i32::from_ne_bytes(id)))?;
    target.close().map_err(|(_, error)| error)?;
    std::fs::File::open(to).and_then(|file| file.sync_all()).map_err(|error| Error::Failing(format!("`{}`: {error}", to.display())))
}

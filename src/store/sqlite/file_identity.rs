//! File identity: whether the path of a SQLite database still leads to the files that are open.
//!
//! An open file outlives its name. When the database, its log or the log's index is deleted or replaced under a running server,
//! SQLite goes on in files without a name, and everything it acknowledges is lost with the last process that has them open. A file
//! that was cut short has lost pages that nothing has asked for yet. The writer therefore compares names and files before it begins a
//! group and before it acknowledges one; readers compare before they open a connection.
//!
//! Guarantee: a write that is acknowledged went to the files that the path led to after its commit.

use std::{
    fs::{self, File, Metadata},
    io,
    mem::ManuallyDrop,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    thread::sleep,
    time::Duration,
};

use rusqlite::{Connection, OpenFlags};

use crate::store::{Error, Result, lock::lock};

/// What SQLite appends to the name of a database for its write-ahead log and for the log's index.
const LOG: &str = "-wal";
const INDEX: &str = "-shm";

/// The device and the inode of a file.
type Inode = (u64, u64);

/// A database file as it was when it was first opened, with its log and the log's index.
pub(in crate::store) struct FileIdentity {
    path: PathBuf,
    inode: Inode,
    log: Inode,
    index: Inode,
    /// Keeps SQLite from removing the log while other connections come and go. `None` once it is closed.
    keeper: Mutex<Option<Connection>>,
    /// Opened when the header is first asked for, and never closed: whichever of a process's descriptors of a file is closed, the system
    /// drops the locks that SQLite holds on it (https://www.sqlite.org/howtocorrupt.html, 2.2).
    header: OnceLock<ManuallyDrop<File>>,
    /// The length at the last look, in bytes. A checkpoint behind a VACUUM shortens the file and writes the new length into its header.
    length: AtomicU64,
}

/// How often a length that contradicts the header is looked at again: a checkpoint of another process may be under way.
const LOOKS: u32 = 3;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Where a SQLite file's header has the bytes of a page (two of them, big-endian, 1 for 65,536) and the number of pages (four).
const PAGE_BYTES_AT: usize = 16;
const PAGES_AT: usize = 28;
const HEADER: usize = PAGES_AT + 4;

const WHAT_HELPS: &str = "writes are refused; stop the server, put the file back, and start it again";

impl FileIdentity {
    /// The file at a path, which must be there and have a log.
    pub fn of(path: &Path) -> Result<Self> {
        let keeper = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        // To read is to open the log.
        keeper.query_row("SELECT COUNT(*) FROM sqlite_schema", (), |row| row.get::<_, i64>(0))?;
        let look = |path: &Path| fs::metadata(path).map_err(|error| Error::Unavailable(format!("`{}`: {error}", path.display())));
        let found = look(path)?;
        Ok(Self {
            path: path.to_owned(),
            inode: inode(&found),
            log: inode(&look(&beside(path, LOG))?),
            index: inode(&look(&beside(path, INDEX))?),
            keeper: Mutex::new(Some(keeper)),
            header: OnceLock::new(),
            length: AtomicU64::new(found.len()),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fails unless the names lead to the files that were opened first, and the database is as long as its header says.
    pub fn check(&self) -> Result<()> {
        same(&beside(&self.path, LOG), self.log)?;
        same(&beside(&self.path, INDEX), self.index)?;
        let found = same(&self.path, self.inode)?;
        let (length, before) = (found.len(), self.length.load(Ordering::Relaxed));
        if length < before && self.is_cut_short(length) {
            let path = self.path.display();
            return Err(Error::Unusable(format!("`{path}` was cut short to {length} bytes while it was open; {WHAT_HELPS}")));
        }
        if length != before {
            self.length.store(length, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Lets SQLite fold the log into the database and remove it with the last other connection. To be called when all of this process
    /// are closed.
    pub fn close(&self) {
        drop(lock(&self.keeper).take());
    }

    /// The length that the file's header states, in bytes.
    fn header_length(&self) -> io::Result<u64> {
        let file = match self.header.get() {
            Some(file) => file,
            None => {
                let opened = ManuallyDrop::new(File::open(&self.path)?);
                self.header.get_or_init(|| opened)
            }
        };
        let mut header = [0; HEADER];
        match file.read_exact_at(&mut header, 0) {
            Ok(()) => Ok(stated_length(&header)),
            // Not even a header is left.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(u64::MAX),
            Err(error) => Err(error),
        }
    }

    fn is_cut_short(&self, mut length: u64) -> bool {
        for look in 1.. {
            // A header that cannot be read is for SQLite to report.
            let Ok(expected) = self.header_length() else { return false };
            if length >= expected || look == LOOKS {
                return length < expected;
            }
            sleep(BETWEEN_LOOKS);
            length = fs::metadata(&self.path).map_or(length, |found| found.len());
        }
        false
    }
}

/// The length that a SQLite header states, in bytes.
fn stated_length(header: &[u8; HEADER]) -> u64 {
    let number = |at: usize, bytes: usize| header[at..at + bytes].iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let page = match number(PAGE_BYTES_AT, 2) {
        1 => 65_536,
        bytes => bytes,
    };
    page * number(PAGES_AT, 4)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

fn inode(found: &Metadata) -> Inode {
    (found.dev(), found.ino())
}

fn missing(path: &Path, error: &io::Error) -> Error {
    Error::Unusable(format!("`{}` was removed while it was open ({error}); {WHAT_HELPS}", path.display()))
}

fn same(path: &Path, open: Inode) -> Result<Metadata> {
    let found = fs::metadata(path).map_err(|error| missing(path, &error))?;
    if inode(&found) == open {
        return Ok(found);
    }
    Err(Error::Unusable(format!("`{}` was replaced by another file while it was open; {WHAT_HELPS}", path.display())))
}

/// A file that is there, for tests.
#[cfg(test)]
pub(in crate::store) fn opened(path: &Path) -> std::sync::Arc<FileIdentity> {
    FileIdentity::of(path).unwrap().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(home: &tempfile::TempDir) -> (PathBuf, Connection) {
        let path = home.path().join("file.db");
        let file = Connection::open(&path).unwrap();
        file.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (b BLOB NOT NULL); INSERT INTO t VALUES (zeroblob(100000))").unwrap();
        file.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        (path, file)
    }

    fn says(checked: Result<()>, what: &str) -> bool {
        matches!(checked, Err(Error::Unusable(reason)) if reason.contains(what))
    }

    #[test]
    fn a_file_that_is_removed_replaced_or_cut_short_is_noticed() {
        let home = tempfile::tempdir().unwrap();
        let (path, _open) = file(&home);
        let identity = FileIdentity::of(&path).unwrap();
        let aside = home.path().join("aside");
        identity.check().unwrap();
        fs::rename(&path, &aside).unwrap();
        assert!(says(identity.check(), "was removed"));
        fs::copy(&aside, &path).unwrap();
        assert!(says(identity.check(), "was replaced"));
        fs::rename(&aside, &path).unwrap();
        identity.check().unwrap();
        let length = fs::metadata(&path).unwrap().len();
        let cut = |length| File::options().write(true).open(&path).unwrap().set_len(length).unwrap();
        for short in [length - 1, 20, 0] {
            cut(short);
            assert!(says(identity.check(), "was cut short"), "{short}");
            assert!(says(identity.check(), "was cut short"), "{short}, again");
        }
    }

    #[test]
    fn a_file_may_grow_and_be_vacuumed() {
        let home = tempfile::tempdir().unwrap();
        let (path, open) = file(&home);
        let identity = FileIdentity::of(&path).unwrap();
        for _ in 0..3 {
            for statement in ["INSERT INTO t VALUES (zeroblob(300000))", "DELETE FROM t", "VACUUM"] {
                open.execute_batch(statement).unwrap();
                identity.check().unwrap();
                open.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
                identity.check().unwrap();
            }
        }
    }

    #[test]
    fn a_log_that_is_removed_or_replaced_is_noticed() {
        let home = tempfile::tempdir().unwrap();
        let (path, open) = file(&home);
        let identity = FileIdentity::of(&path).unwrap();
        open.execute_batch("INSERT INTO t VALUES (x'00')").unwrap();
        identity.check().unwrap();
        for name in ["file.db-wal", "file.db-shm"] {
            let (name, aside) = (home.path().join(name), home.path().join("aside"));
            fs::rename(&name, &aside).unwrap();
            assert!(says(identity.check(), "was removed"));
            fs::copy(&aside, &name).unwrap();
            assert!(says(identity.check(), "was replaced"));
            fs::rename(&aside, &name).unwrap();
            identity.check().unwrap();
        }
    }
}

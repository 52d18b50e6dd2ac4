//! File identity: checks whether the path of a SQLite database still leads to the open files, and whether these files are intact.
//!
//! An open file stays usable after its name is deleted. If the database, its write-ahead log (WAL) or the WAL's index is deleted or
//! replaced while a server runs, SQLite continues in files without a name, and everything that it acknowledges is lost when the last
//! process closes them. A file that was truncated has lost pages, which remains unnoticed until they are read. A file over which another
//! file was copied contains pages of both files. Therefore the writer checks the names and the files when it begins a transaction, and
//! again after the commit, before it acknowledges the writes. A reader checks them before it opens a connection.
//!
//! A check costs three calls of `stat`. The database's header is read only if a length or the time of the last change differs from the
//! previous check, as after a checkpoint. A database that became shorter is then compared with the length that its header states. A WAL
//! that became shorter is compared with the number of pages that its index states.
//!
//! Guarantee: a write that is acknowledged went to the files that the path led to after its commit. Two cases are not noticed: a WAL that
//! is truncated in the few milliseconds between the two checks of a transaction, and a whole SQLite database that was copied over this
//! database between two checks.

use std::{
    fs::{self, File, Metadata},
    io,
    mem::ManuallyDrop,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    sync::{Mutex, OnceLock},
    thread::sleep,
    time::{Duration, Instant},
};

use rusqlite::{Connection, OpenFlags};

use crate::store::{
    Error, Result,
    mutex::lock,
    sqlite::{
        connection::{self, INDEX, LOG, beside},
        foreign_wal_check::application_id,
    },
};

/// The device and the inode of a file.
type Inode = (u64, u64);

/// The identity of a database file, its WAL and the WAL's index when the file was first opened, and what the checks have found since.
pub(in crate::store) struct FileIdentity {
    path: PathBuf,
    inode: Inode,
    log: Inode,
    index: Inode,
    application_id: i32,
    /// A connection that stays open, so that SQLite does not remove the WAL when the last other connection closes. `None` once this
    /// connection is closed.
    keeper: Mutex<Option<Connection>>,
    /// The database file, opened when its header is first read, and never closed: when a process closes any of its descriptors of a file,
    /// the system drops all locks that SQLite holds on the file (https://www.sqlite.org/howtocorrupt.html, 2.2).
    header: OnceLock<ManuallyDrop<File>>,
    seen: Mutex<FileState>,
    /// The state of the files when they last looked wrong, and since when that state has not changed.
    suspicion: Mutex<Option<(FileState, Instant)>>,
    /// How long a state that looks wrong must stay unchanged before it counts as a fault.
    quiet: Duration,
    /// The error message, once another program has changed the content of the files. This damage cannot be repaired while the files are
    /// open.
    broken: OnceLock<String>,
}

/// The state of the files at a check.
#[derive(Clone, Copy, PartialEq)]
struct FileState {
    /// The length of the database, in bytes. A shorter file is not always damaged: a checkpoint after a VACUUM shortens the file and writes
    /// the new length into its header.
    length: u64,
    /// When the database was last changed, in seconds and nanoseconds.
    changed: (i64, i64),
    /// The length of the WAL, in bytes.
    log: u64,
}

/// How many comparisons in a row must find something wrong before a write is refused, and the pause between two of them.
const LOOKS: u32 = 3;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// How long files that look wrong must stay unchanged before they count as broken. For example, a checkpoint of another process writes the
/// header first and the last page last. In between, the file is shorter than its header states and looks truncated.
const QUIET: Duration = Duration::from_secs(2);

/// The first bytes of a SQLite file, and the offsets in its header of the page size (two bytes, big-endian, 1 for 65,536) and of the
/// number of pages (four bytes): https://www.sqlite.org/fileformat2.html#the_database_header.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const PAGE_BYTES_AT: usize = 16;
const PAGES_AT: usize = 28;
const HEADER: usize = PAGES_AT + 4;

/// The length of the WAL's header, and of the frame header before each of its pages, in bytes.
const LOG_HEADER: u64 = 32;
const FRAME_HEADER: u64 = 24;

const WHAT_HELPS: &str = "writes are refused; stop the server, put the file back, and start it again";

impl FileIdentity {
    /// Records the identity of the file at a path. The file must exist and have a WAL.
    pub fn of(path: &Path) -> Result<Self> {
        let keeper = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        // The first read opens the WAL.
        keeper.query_row("SELECT COUNT(*) FROM sqlite_schema", (), |row| row.get::<_, i64>(0))?;
        let look = |path: &Path| fs::metadata(path).map_err(|error| Error::Unavailable(format!("`{}`: {error}", path.display())));
        let (found, log) = (look(path)?, look(&beside(path, LOG))?);
        Ok(Self {
            path: path.to_owned(),
            inode: inode(&found),
            log: inode(&log),
            index: inode(&look(&beside(path, INDEX))?),
            application_id: application_id(&keeper)?,
            keeper: Mutex::new(Some(keeper)),
            header: OnceLock::new(),
            // The time 0 differs from the file's time, so that the first check reads the header.
            seen: Mutex::new(FileState { length: found.len(), changed: (0, 0), log: log.len() }),
            suspicion: Mutex::default(),
            quiet: QUIET,
            broken: OnceLock::new(),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a statement that writes the first page of the database into the WAL. The application id in that page shows that the WAL
    /// belongs to the file.
    pub fn name_in_log(&self) -> String {
        format!("PRAGMA application_id = {}", self.application_id)
    }

    /// Checks the files: fails if a path no longer leads to the file whose identity was recorded, or if a file was truncated or
    /// overwritten.
    pub fn check(&self) -> Result<()> {
        if let Some(reason) = self.broken.get() {
            return Err(Error::Unusable(reason.clone()));
        }
        let before = *lock(&self.seen);
        let now = self.look()?;
        if now == before {
            return Ok(());
        }
        let Some(now) = self.compared(before, now)? else { return Ok(()) };
        *lock(&self.seen) = now;
        Ok(())
    }

    /// Returns the current state of the files. Fails if a file was removed or replaced.
    fn look(&self) -> Result<FileState> {
        let log = same(&beside(&self.path, LOG), self.log)?.len();
        same(&beside(&self.path, INDEX), self.index)?;
        let found = same(&self.path, self.inode)?;
        Ok(FileState { length: found.len(), changed: (found.mtime(), found.mtime_nsec()), log })
    }

    /// Checks the files after a length or time has changed since the previous check. The database must begin with a header. A database that
    /// became shorter must have the length that its header states. A WAL that became shorter must have the length for the number of pages
    /// in its index. While something is wrong, the check is repeated, at most `LOOKS` times in all, since SQLite may be writing. Returns
    /// the state to remember, or `None` if a file cannot be read. Fails if a file was truncated or overwritten.
    fn compared(&self, before: FileState, mut now: FileState) -> Result<Option<FileState>> {
        for look in 1.. {
            // No error here: SQLite reports a file that cannot be read.
            let Ok(header) = self.header() else { return Ok(None) };
            let Some(pages) = self.pages_of_log() else { return Ok(None) };
            let wrong = match header {
                Some(header) if now.length < before.length && now.length < header.length => Some(("", "was cut short")),
                Some(header) if now.log < before.log && now.log < log_length(pages, header.page) => Some((LOG, "was cut short")),
                Some(_) => None,
                None if now.length < before.length => Some(("", "was cut short")),
                None => Some(("", "was written over")),
            };
            match wrong {
                None => {
                    *lock(&self.suspicion) = None;
                    return Ok(Some(now));
                }
                Some((suffix, what)) if look == LOOKS => return Err(self.suspect(now, &beside(&self.path, suffix), what)),
                Some(_) => {
                    sleep(BETWEEN_LOOKS);
                    now = self.look()?;
                }
            }
        }
        Ok(None)
    }

    /// Records that a file looks wrong, and returns the error. The files count as broken once they have not changed for the time `quiet`.
    fn suspect(&self, now: FileState, path: &Path, what: &str) -> Error {
        let mut suspicion = lock(&self.suspicion);
        let path = path.display();
        match *suspicion {
            Some((seen, since)) if seen == now && since.elapsed() >= self.quiet => {
                let reason = format!("`{path}` {what} while it was open; {WHAT_HELPS}");
                Error::Unusable(self.broken.get_or_init(|| reason).clone())
            }
            kept => {
                if kept.is_none_or(|(seen, _)| seen != now) {
                    *suspicion = Some((now, Instant::now()));
                }
                Error::Unavailable(format!("`{path}` {what}, unless a checkpoint of another process is under way; it is looked at again"))
            }
        }
    }

    /// Returns the size of the database and its WAL, in bytes.
    pub fn bytes(&self) -> u64 {
        ["", LOG].iter().filter_map(|suffix| fs::metadata(beside(&self.path, suffix)).ok()).map(|found| found.len()).sum()
    }

    /// Returns the size of the WAL at the last check, in bytes.
    pub fn log_length(&self) -> u64 {
        lock(&self.seen).log
    }

    /// Closes the connection that keeps the WAL. If no other process has the database open, SQLite then copies the WAL into it and removes
    /// the WAL. To be called once all other connections of this process are closed.
    pub fn close(&self) {
        drop(lock(&self.keeper).take());
    }

    /// Reads the file's header; `None` if the file does not begin with a header.
    fn header(&self) -> io::Result<Option<Header>> {
        let file = match self.header.get() {
            Some(file) => file,
            None => {
                let opened = ManuallyDrop::new(File::open(&self.path)?);
                self.header.get_or_init(|| opened)
            }
        };
        let mut bytes = [0; HEADER];
        match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => Ok(Header::of(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the number of pages of the WAL according to its index; `None` if that is not known.
    fn pages_of_log(&self) -> Option<u64> {
        let keeper = lock(&self.keeper);
        u64::try_from(connection::log(keeper.as_ref()?, "NOOP").ok()?.pages).ok()
    }
}

/// The values that are read from the header of a SQLite file.
struct Header {
    /// The size of a page, and of the whole file, in bytes.
    page: u64,
    length: u64,
}

impl Header {
    fn of(bytes: &[u8; HEADER]) -> Option<Self> {
        let number = |at: usize, length: usize| bytes[at..at + length].iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let page = match number(PAGE_BYTES_AT, 2) {
            1 => 65_536,
            bytes => bytes,
        };
        bytes.starts_with(MAGIC).then(|| Self { page, length: page * number(PAGES_AT, 4) })
    }
}

/// Returns the length in bytes of a WAL with this number of pages of this size.
fn log_length(pages: u64, page: u64) -> u64 {
    if pages == 0 { 0 } else { LOG_HEADER + pages * (FRAME_HEADER + page) }
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

/// Records the identity of the file at a path, for tests.
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

    /// Returns an identity without a waiting time: a second check that finds the same wrong state already counts the files as broken.
    fn without_waiting_time(path: &Path) -> FileIdentity {
        FileIdentity { quiet: Duration::ZERO, ..FileIdentity::of(path).unwrap() }
    }

    /// Runs two checks; returns whether the first fails with a temporary error and the second, since nothing has changed, with the final
    /// error.
    fn second_check_says(identity: &FileIdentity, what: &str) -> bool {
        let first = identity.check();
        matches!(first, Err(Error::Unavailable(reason)) if reason.contains(what)) && says(identity.check(), what)
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
            let identity = without_waiting_time(&path);
            identity.check().unwrap();
            let whole = fs::read(&path).unwrap();
            cut(short);
            assert!(second_check_says(&identity, "was cut short"), "{short}");
            fs::write(&path, whole).unwrap();
            assert!(says(identity.check(), "was cut short"), "{short}: connections may have read what was there meanwhile");
        }
    }

    #[test]
    fn an_overwritten_file_is_noticed() {
        let home = tempfile::tempdir().unwrap();
        let (path, _open) = file(&home);
        let identity = without_waiting_time(&path);
        identity.check().unwrap();
        fs::write(&path, vec![0; 300_000]).unwrap();
        assert!(second_check_says(&identity, "was written over"));
    }

    #[test]
    fn a_truncated_wal_is_noticed_and_a_restarted_wal_is_accepted() {
        let home = tempfile::tempdir().unwrap();
        let (path, open) = file(&home);
        let identity = without_waiting_time(&path);
        for _ in 0..3 {
            open.execute_batch("INSERT INTO t VALUES (zeroblob(300000))").unwrap();
            identity.check().unwrap();
            open.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
            identity.check().unwrap();
        }
        open.execute_batch("INSERT INTO t VALUES (zeroblob(300000))").unwrap();
        identity.check().unwrap();
        let log = File::options().write(true).open(beside(&path, LOG)).unwrap();
        log.set_len(log.metadata().unwrap().len() - 1).unwrap();
        assert!(second_check_says(&identity, "-wal` was cut short"));
    }

    /// Simulates a checkpoint by another process that makes the file longer: it writes the header first and the last page last.
    #[test]
    fn a_file_shorter_than_its_header_states_is_refused_until_it_has_grown() {
        let home = tempfile::tempdir().unwrap();
        let (path, open) = file(&home);
        let identity = FileIdentity::of(&path).unwrap();
        open.execute_batch("INSERT INTO t VALUES (zeroblob(300000)); PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        identity.check().unwrap();
        let whole = fs::read(&path).unwrap();
        let grown = |length: usize| fs::write(&path, &whole[..length]).unwrap();
        for length in [100_000, 200_000, 300_000] {
            grown(length);
            assert!(matches!(identity.check(), Err(Error::Unavailable(_))), "{length}");
        }
        grown(whole.len());
        identity.check().unwrap();
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

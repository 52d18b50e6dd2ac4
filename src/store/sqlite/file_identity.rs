//! File identity: whether the path of a SQLite database still leads to the files that are open, and whether they are intact.
//!
//! An open file outlives its name. When the database, its log or the log's index is deleted or replaced under a running server,
//! SQLite goes on in files without a name, and everything it acknowledges is lost with the last process that has them open. A file
//! that was cut short has lost pages that nothing has asked for yet, and one that another was copied over has pages of both. The writer
//! therefore looks at names and files before it begins a group and before it acknowledges one; readers do before they open a connection.
//!
//! A look costs three calls of `stat`. Only where a length or the time of the last change differs from the look before, as after a
//! checkpoint, the header is read, and a database that became shorter is compared with the length that it states. A log that became
//! shorter is compared with the number of pages that its index says it has.
//!
//! Guarantee: a write that is acknowledged went to the files that the path led to after its commit. Not noticed are a log that is cut
//! short in the few milliseconds between the two looks, and a whole SQLite database that was copied over this one within that time.

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
    lock::lock,
    sqlite::{
        connection::{self, INDEX, LOG, beside},
        stale_files::application_id,
    },
};

/// The device and the inode of a file.
type Inode = (u64, u64);

/// A database file as it was when it was first opened, with its log and the log's index.
pub(in crate::store) struct FileIdentity {
    path: PathBuf,
    inode: Inode,
    log: Inode,
    index: Inode,
    application_id: i32,
    /// Keeps SQLite from removing the log while other connections come and go. `None` once it is closed.
    keeper: Mutex<Option<Connection>>,
    /// Opened when the header is first asked for, and never closed: whichever of a process's descriptors of a file is closed, the system
    /// drops the locks that SQLite holds on it (https://www.sqlite.org/howtocorrupt.html, 2.2).
    header: OnceLock<ManuallyDrop<File>>,
    seen: Mutex<FileState>,
    /// What looked wrong, and since when it has not changed.
    suspicion: Mutex<Option<(FileState, Instant)>>,
    /// How long it must not change to be taken for a fault.
    quiet: Duration,
    /// What somebody else did to the content of the files, which cannot be mended while they are open.
    broken: OnceLock<String>,
}

/// What a look saw.
#[derive(Clone, Copy, PartialEq)]
struct FileState {
    /// The length of the database, in bytes. A checkpoint behind a VACUUM shortens the file and writes the new length into its header.
    length: u64,
    /// When the database was last changed, in seconds and nanoseconds.
    changed: (i64, i64),
    /// The length of the log, in bytes.
    log: u64,
}

/// How often a look that found something wrong is repeated before a write is refused for it.
const LOOKS: u32 = 3;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// How long files that look wrong must not change to be taken for broken. A checkpoint of another process writes the header first, and
/// the file reaches the length that the header states with its last page.
const QUIET: Duration = Duration::from_secs(2);

/// What a SQLite file begins with, and where its header has the bytes of a page (two of them, big-endian, 1 for 65,536) and the number of
/// pages (four): https://www.sqlite.org/fileformat2.html#the_database_header.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const PAGE_BYTES_AT: usize = 16;
const PAGES_AT: usize = 28;
const HEADER: usize = PAGES_AT + 4;

/// The bytes of a log's header, and of what stands before each of its pages.
const LOG_HEADER: u64 = 32;
const FRAME_HEADER: u64 = 24;

const WHAT_HELPS: &str = "writes are refused; stop the server, put the file back, and start it again";

impl FileIdentity {
    /// The file at a path, which must be there and have a log.
    pub fn of(path: &Path) -> Result<Self> {
        let keeper = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        // The first read opens the log.
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
            // The first look reads the header.
            seen: Mutex::new(FileState { length: found.len(), changed: (0, 0), log: log.len() }),
            suspicion: Mutex::default(),
            quiet: QUIET,
            broken: OnceLock::new(),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A statement that writes the first page, by which the log is known to belong to the file.
    pub fn name_in_log(&self) -> String {
        format!("PRAGMA application_id = {}", self.application_id)
    }

    /// Fails unless the names lead to the files that were opened first, and they were neither cut short nor written over.
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

    /// The files as they are.
    fn look(&self) -> Result<FileState> {
        let log = same(&beside(&self.path, LOG), self.log)?.len();
        same(&beside(&self.path, INDEX), self.index)?;
        let found = same(&self.path, self.inode)?;
        Ok(FileState { length: found.len(), changed: (found.mtime(), found.mtime_nsec()), log })
    }

    /// What is to be remembered of files that differ from the look before; nothing where that is not known.
    fn compared(&self, before: FileState, mut now: FileState) -> Result<Option<FileState>> {
        for look in 1.. {
            // What cannot be read is for SQLite to report.
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

    /// Notes that a file looks wrong. The files count as broken once they have not changed for a while.
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

    /// The bytes of the database and its log.
    pub fn bytes(&self) -> u64 {
        ["", LOG].iter().filter_map(|suffix| fs::metadata(beside(&self.path, suffix)).ok()).map(|found| found.len()).sum()
    }

    /// The bytes of the log at the last look.
    pub fn log_length(&self) -> u64 {
        lock(&self.seen).log
    }

    /// Lets SQLite fold the log into the database and remove it with the last other connection. To be called when all of this process
    /// are closed.
    pub fn close(&self) {
        drop(lock(&self.keeper).take());
    }

    /// The file's header; `None` where the file does not begin with one.
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

    /// The pages that the log has, by its index; `None` where it is not known.
    fn pages_of_log(&self) -> Option<u64> {
        let keeper = lock(&self.keeper);
        u64::try_from(connection::log(keeper.as_ref()?, "NOOP").ok()?.pages).ok()
    }
}

/// What is read of a SQLite header.
struct Header {
    /// The bytes of a page, and of the whole file.
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

/// The bytes of a log with so many pages.
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

    /// One that takes for broken at once what it sees a second time.
    fn hasty(path: &Path) -> FileIdentity {
        FileIdentity { quiet: Duration::ZERO, ..FileIdentity::of(path).unwrap() }
    }

    /// Refused at first, and for good where nothing changes.
    fn says_at_last(identity: &FileIdentity, what: &str) -> bool {
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
            let identity = hasty(&path);
            identity.check().unwrap();
            let whole = fs::read(&path).unwrap();
            cut(short);
            assert!(says_at_last(&identity, "was cut short"), "{short}");
            fs::write(&path, whole).unwrap();
            assert!(says(identity.check(), "was cut short"), "{short}: connections may have read what was there meanwhile");
        }
    }

    #[test]
    fn a_file_that_something_else_was_written_over_is_noticed() {
        let home = tempfile::tempdir().unwrap();
        let (path, _open) = file(&home);
        let identity = hasty(&path);
        identity.check().unwrap();
        fs::write(&path, vec![0; 300_000]).unwrap();
        assert!(says_at_last(&identity, "was written over"));
    }

    #[test]
    fn a_log_that_was_cut_short_is_noticed_and_one_that_starts_over_is_none() {
        let home = tempfile::tempdir().unwrap();
        let (path, open) = file(&home);
        let identity = hasty(&path);
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
        assert!(says_at_last(&identity, "-wal` was cut short"));
    }

    /// As while another process copies its log into a file that was shorter before: the header comes first, the last page last.
    #[test]
    fn a_file_that_still_grows_to_what_its_header_states_is_refused_for_a_while_only() {
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

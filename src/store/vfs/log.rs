//! What a commit writes to SQLite's log, gathered into few writes.
//!
//! For each page SQLite makes two system calls, one for the 24 bytes that stand before it there and one for the page. A group of
//! two dozen messages has some 180 pages; measured, the kernel takes 430 µs for those calls and 60 µs for the same bytes in pieces
//! of [`PIECE`], where the commit as a whole took 1,100 µs.
//!
//! Called by `writer`. Guarantees: within [`gathered`] what goes to a log is there, in SQLite's order, before the log is read,
//! measured, cut or synced, and, synced or not, before others are told of the transaction; what is left when [`gathered`] ends, as where
//! a commit failed, goes nowhere. Elsewhere a write is a write.

use std::{
    cell::RefCell,
    ffi::{c_int, c_void},
    ptr,
};

use libsqlite3_sys as ffi;

use super::{ASKING, behind};

/// How many bytes go to the file at a time, at most: of more SQLite's own VFS takes the number without its upper bits.
const PIECE: usize = (1 << 17) - 1;

/// What stands before a page in a log, and where in it the size of the file after the transaction that this page ends. It is 0
/// before every other page.
const FRAME_HEADER: usize = 24;
const SIZE_AFTER: std::ops::Range<usize> = 4..8;

/// The methods of a log.
pub(super) static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    ..ASKING
};

thread_local! {
    static GATHERED: RefCell<Option<Gathered>> = const { RefCell::new(None) };
}

/// Bytes that stand one behind the other in a file, and are to be put there.
struct Gathered {
    file: *mut ffi::sqlite3_file,
    at: i64,
    bytes: Vec<u8>,
    /// Whether the last header is that of the page that ends its transaction.
    ends: bool,
}

impl Gathered {
    fn write(&mut self, file: *mut ffi::sqlite3_file, bytes: &[u8], at: i64) -> c_int {
        let goes_on = self.file == file && self.at + self.bytes.len() as i64 == at;
        if !goes_on || self.bytes.len() + bytes.len() > PIECE {
            let code = self.put();
            if code != ffi::SQLITE_OK {
                return code;
            }
            (self.file, self.at) = (file, at);
        }
        self.bytes.extend_from_slice(bytes);
        let is_header = bytes.len() == FRAME_HEADER;
        if is_header {
            self.ends = bytes[SIZE_AFTER].iter().any(|byte| *byte != 0);
        }
        // Where a page was written over, the headers behind it are written anew, without their pages: with the last of them the
        // transaction ends.
        if self.ends && (!is_header || !goes_on) { self.put() } else { ffi::SQLITE_OK }
    }

    /// Writes what there is. What could not be written is not kept: SQLite takes the transaction back.
    fn put(&mut self) -> c_int {
        if self.bytes.is_empty() {
            return ffi::SQLITE_OK;
        }
        // SAFETY: the file is open: its `close` forgets what is gathered for it.
        let code = unsafe { write_to(self.file, &self.bytes, self.at) };
        self.at += self.bytes.len() as i64;
        self.bytes.clear();
        code
    }
}

/// Runs a COMMIT so that what it writes to the log is gathered.
pub fn gathered<T>(commit: impl FnOnce() -> T) -> T {
    /// Also where `commit` panics.
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            GATHERED.set(None);
        }
    }
    let bytes = Vec::with_capacity(PIECE);
    let outer = GATHERED.replace(Some(Gathered { file: ptr::null_mut(), at: 0, bytes, ends: false }));
    debug_assert!(outer.is_none(), "a commit within a commit would lose what that one wrote");
    let _end = End;
    commit()
}

/// SAFETY: as [`behind`].
unsafe fn write_to(file: *mut ffi::sqlite3_file, bytes: &[u8], at: i64) -> c_int {
    unsafe { ask!(file, xWrite, ffi::SQLITE_IOERR_WRITE, bytes.as_ptr().cast(), bytes.len() as c_int, at) }
}

/// Writes what is gathered for this file, before somebody looks at it.
fn put(file: *mut ffi::sqlite3_file) -> c_int {
    with_gathered(|gathered| if gathered.file == file { gathered.put() } else { ffi::SQLITE_OK }).unwrap_or(ffi::SQLITE_OK)
}

/// Nothing where nothing is gathered on this thread. A thread that ends may still close files.
fn with_gathered<T>(work: impl FnOnce(&mut Gathered) -> T) -> Option<T> {
    GATHERED.try_with(|gathered| gathered.borrow_mut().as_mut().map(work)).ok().flatten()
}

unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, bytes: *const c_void, count: c_int, at: i64) -> c_int {
    unsafe {
        let bytes = std::slice::from_raw_parts(bytes.cast::<u8>(), usize::try_from(count).unwrap_or(0));
        with_gathered(|gathered| gathered.write(file, bytes, at)).unwrap_or_else(|| write_to(file, bytes, at))
    }
}

fn forget(file: *mut ffi::sqlite3_file) -> c_int {
    with_gathered(|gathered| {
        if gathered.file == file {
            gathered.bytes.clear();
        }
    });
    ffi::SQLITE_OK
}

methods! {
    forget close() = xClose or ffi::SQLITE_OK;
    put read(into: *mut c_void, count: c_int, at: i64) = xRead or ffi::SQLITE_IOERR_READ;
    put truncate(size: i64) = xTruncate or ffi::SQLITE_IOERR_TRUNCATE;
    put sync(flags: c_int) = xSync or ffi::SQLITE_IOERR_FSYNC;
    put file_size(size: *mut i64) = xFileSize or ffi::SQLITE_IOERR_FSTAT;
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rusqlite::{Connection, OpenFlags};

    use super::*;
    use crate::store::{connect::PAGE_BYTES, vfs::vfs};

    const ROWS: i64 = 300;

    fn open(path: &Path, settings: &str) -> Connection {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags_and_vfs(path, flags, vfs().unwrap()).unwrap();
        connection
            .execute_batch(&format!(
                "PRAGMA page_size = {PAGE_BYTES}; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; {settings}"
            ))
            .unwrap();
        connection.execute_batch("CREATE TABLE IF NOT EXISTS t (n INTEGER NOT NULL, b BLOB NOT NULL)").unwrap();
        connection
    }

    /// More than goes to the log at a time.
    fn fill(connection: &Connection, n: i64) {
        for _ in 0..ROWS {
            connection.execute("INSERT INTO t VALUES (?1, randomblob(3000))", [n]).unwrap();
        }
    }

    fn count(connection: &Connection, n: i64) -> i64 {
        connection.query_row("SELECT COUNT(*) FROM t WHERE n = ?1", [n], |row| row.get(0)).unwrap()
    }

    fn is_whole(connection: &Connection) -> bool {
        connection.query_row("PRAGMA integrity_check", (), |row| row.get::<_, String>(0)).unwrap() == "ok"
    }

    /// How many writes and bytes this process has asked the system for on this thread's behalf.
    fn written() -> (u64, u64) {
        let told = std::fs::read_to_string("/proc/thread-self/io").unwrap();
        let number = |name: &str| told.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap();
        (number("syscw:"), number("wchar:"))
    }

    #[test]
    fn a_commit_takes_few_writes_and_is_there_for_others_before_its_end() {
        let home = tempfile::tempdir().unwrap();
        // The last without a sync, which would have what was gathered written.
        for (name, settings) in [("full", "PRAGMA synchronous = FULL"), ("off", "PRAGMA synchronous = OFF")] {
            let path = home.path().join(name);
            let connection = open(&path, settings);
            let other = Connection::open(&path).unwrap();
            for n in 0..3 {
                connection.execute_batch("BEGIN IMMEDIATE").unwrap();
                fill(&connection, n);
                let before = written();
                gathered(|| {
                    connection.execute_batch("COMMIT").unwrap();
                    assert_eq!((count(&other, n), is_whole(&other)), (ROWS, true), "{name}");
                });
                let (writes, bytes) = (written().0 - before.0, written().1 - before.1);
                assert!(
                    bytes > 3000 * ROWS.unsigned_abs() && writes <= bytes / PIECE as u64 + 3,
                    "{name}: {writes} writes of {bytes} bytes"
                );
            }
            drop((connection, other));
            let again = Connection::open(&path).unwrap();
            assert_eq!(((0..3).map(|n| count(&again, n)).sum::<i64>(), is_whole(&again)), (3 * ROWS, true), "{name}");
        }
    }

    /// One that is not ended and outgrows its cache: what it wrote to the log already it reads back, and writes over.
    fn begin_long(path: &Path, synchronous: &str) -> Connection {
        let connection = open(path, &format!("PRAGMA synchronous = {synchronous}; PRAGMA cache_size = 10; PRAGMA cache_spill = 10"));
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        fill(&connection, 0);
        connection
    }

    /// Whatever is synced: a process that dies leaves a file and a log that another one reads.
    #[test]
    fn what_a_long_transaction_wrote_over_survives_a_kill() {
        let home = tempfile::tempdir().unwrap();
        for synchronous in ["FULL", "OFF"] {
            let path = home.path().join(synchronous);
            let connection = begin_long(&path, synchronous);
            connection.execute_batch("UPDATE t SET n = 1").unwrap();
            gathered(|| connection.execute_batch("COMMIT")).unwrap();
            let left = home.path().join(format!("{synchronous}-left"));
            for of in ["", "-wal"] {
                let name = |path: &Path| format!("{}{of}", path.display());
                std::fs::copy(name(&path), name(&left)).unwrap();
            }
            let left = Connection::open(&left).unwrap();
            assert_eq!((count(&left, 1), is_whole(&left)), (ROWS, true), "{synchronous}");
        }
    }

    /// More than a commit within [`gathered`].
    #[test]
    fn what_was_gathered_is_read_back() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        let connection = gathered(|| {
            let connection = begin_long(&path, "FULL");
            connection.execute_batch("SAVEPOINT s; UPDATE t SET n = n + 1").unwrap();
            connection.execute_batch("ROLLBACK TO s; UPDATE t SET n = n + 2").unwrap();
            assert_eq!((count(&connection, 0), count(&connection, 1), count(&connection, 2)), (0, 0, ROWS));
            connection.execute_batch("COMMIT").unwrap();
            connection
        });
        connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        assert_eq!((count(&Connection::open(&path).unwrap(), 2), is_whole(&connection)), (ROWS, true));
    }

    /// As where a commit fails half-way.
    #[test]
    fn what_no_commit_ended_goes_nowhere() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        let connection = gathered(|| {
            let connection = begin_long(&path, "FULL");
            connection.execute_batch("ROLLBACK").unwrap();
            connection
        });
        let other = open(&path, "PRAGMA synchronous = FULL");
        fill(&other, 1);
        drop(connection);
        assert_eq!((count(&other, 0), count(&other, 1), is_whole(&other)), (0, ROWS, true));
    }
}

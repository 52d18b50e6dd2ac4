//! The mapping of a database, kept from one state of it to the next.
//!
//! Where another connection has committed since, SQLite lets go of the mapping through which it reads the file, and makes it anew: two
//! system calls, a fault for whatever is read next, and on other processors the loss of what they know of the addresses. Beside 500
//! commits a second that was a twentieth of what a message cost, for the look at its key alone.
//!
//! SQLite does so since the file may have become shorter and longer again, behind which some systems do not show through an old
//! mapping what is there now. On Linux a mapping shows the file as it is; elsewhere it is let go as before, and so it is on Linux where
//! the file is shorter than when it was mapped: nothing is read behind its end, whatever a damaged page says. And SQLite does so since
//! the file may have become longer: what lies behind the mapping is read as where there is none, and once that was so for [`UNMAPPED`]
//! pages the mapping is let go with the next state.
//!
//! Guarantees: what is read is what SQLite's own VFS would have read; when a state begins, no mapping is longer than the file.

use std::{
    ffi::{c_int, c_void},
    ptr,
};

use libsqlite3_sys as ffi;

use super::{ASKING, File};
use crate::store::connect::MAPPED;

/// How many pages are read without the mapping before it is made anew, which costs as much as some twenty of those.
const UNMAPPED: u32 = 100;

/// So many bytes SQLite wants to be there behind a page that it reads through the mapping.
const BEHIND_PAGE: i64 = 256;

/// The methods of a database.
pub(super) static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods { xFetch: Some(fetch), xUnfetch: Some(unfetch), ..ASKING };

/// What is known of a mapping since it was last let go.
#[derive(Default)]
pub(super) struct Kept {
    /// How long the file was when it was made; 0 where there is none.
    length: i64,
    /// Pages that it did not have, but would have if it were made now.
    unmapped: u32,
}

/// SAFETY, here and below: the file is one that `open` made, and used by one thread at a time.
unsafe fn kept<'a>(file: *mut ffi::sqlite3_file) -> &'a mut Kept {
    unsafe { &mut (*file.cast::<File>()).mapping }
}

/// `None`: that cannot be told.
unsafe fn length(file: *mut ffi::sqlite3_file) -> Option<i64> {
    let mut length = 0;
    let code = unsafe { super::file_size(file, &raw mut length) };
    (code == ffi::SQLITE_OK).then_some(length)
}

unsafe extern "C" fn fetch(file: *mut ffi::sqlite3_file, at: i64, count: c_int, told: *mut *mut c_void) -> c_int {
    unsafe {
        *told = ptr::null_mut();
        let before = if kept(file).length == 0 { length(file) } else { None };
        let code = super::fetch(file, at, count, told);
        let kept = kept(file);
        if !(*told).is_null() {
            kept.length = before.unwrap_or(kept.length);
        } else if at + i64::from(count) + BEHIND_PAGE <= MAPPED {
            kept.unmapped = kept.unmapped.saturating_add(1);
        }
        code
    }
}

/// Of no page: of the mapping.
unsafe extern "C" fn unfetch(file: *mut ffi::sqlite3_file, at: i64, page: *mut c_void) -> c_int {
    unsafe {
        if page.is_null() {
            let is_good = |kept: &Kept| kept.unmapped < UNMAPPED && length(file).is_some_and(|length| length >= kept.length);
            if cfg!(target_os = "linux") && is_good(kept(file)) {
                return ffi::SQLITE_OK;
            }
            *kept(file) = Kept::default();
        }
        super::unfetch(file, at, page)
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::path::Path;

    use rusqlite::{Connection, OpenFlags};

    use super::*;
    use crate::store::vfs::vfs;

    fn open(path: &Path) -> Connection {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Connection::open_with_flags_and_vfs(path, flags, vfs().unwrap()).unwrap()
    }

    /// A reader of a file with a table, and another connection that writes, which has SQLite's own VFS.
    fn file(path: &Path) -> (Connection, Connection) {
        let writer = Connection::open(path).unwrap();
        writer.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (n INTEGER NOT NULL, b BLOB NOT NULL)").unwrap();
        let reader = open(path);
        reader.execute_batch("PRAGMA mmap_size = 100000000").unwrap();
        (reader, writer)
    }

    /// Some twenty rows to ten pages, copied into the file.
    fn write(writer: &Connection, n: i64, rows: i64) {
        for _ in 0..rows {
            writer.execute("INSERT INTO t VALUES (?1, randomblob(2000))", [n]).unwrap();
        }
        writer.execute_batch("PRAGMA wal_checkpoint(PASSIVE)").unwrap();
    }

    /// What a whole read of the table tells.
    fn sums(connection: &Connection) -> (i64, i64, i64) {
        let sums = "SELECT COUNT(*), TOTAL(n), TOTAL(LENGTH(b)) FROM t";
        connection.query_row(sums, (), |row| Ok((row.get(0)?, row.get::<_, f64>(1)? as i64, row.get::<_, f64>(2)? as i64))).unwrap()
    }

    /// The mappings of the file in this process, of which only the reader has one, by size.
    fn mapped(path: &Path) -> Vec<u64> {
        let name = path.to_str().unwrap();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let address = |text: &str| u64::from_str_radix(text, 16).unwrap();
        let sizes = maps.lines().filter(|line| line.ends_with(name)).map(|line| {
            let (from, until) = line.split_whitespace().next().and_then(|range| range.split_once('-')).unwrap();
            address(until) - address(from)
        });
        sizes.collect()
    }

    #[test]
    fn the_mapping_stays_until_much_lies_behind_it() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("mapped.db");
        let (reader, writer) = file(&path);
        write(&writer, 1, 100);
        assert_eq!(sums(&reader), sums(&writer));
        let before = mapped(&path);
        assert!(before.len() == 1 && before[0] > 100_000, "{before:?}");
        // Rows of the pages that are mapped, in another state; and a few pages behind.
        writer.execute_batch("UPDATE t SET n = 2").unwrap();
        write(&writer, 3, 10);
        assert_eq!(sums(&reader), sums(&writer));
        write(&writer, 4, 1);
        assert_eq!((sums(&reader), mapped(&path)), (sums(&writer), before.clone()));
        write(&writer, 5, 2 * i64::from(UNMAPPED));
        assert_eq!((sums(&reader), mapped(&path)), (sums(&writer), before.clone()));
        write(&writer, 6, 1);
        assert_eq!(sums(&reader), sums(&writer));
        let after = mapped(&path);
        assert!(after.len() == 1 && after[0] > before[0], "{before:?} {after:?}");
    }

    #[test]
    fn a_file_that_became_shorter_and_longer_again_is_read_as_it_is() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("cut.db");
        let (reader, writer) = file(&path);
        write(&writer, 1, 200);
        assert_eq!(sums(&reader), sums(&writer));
        let (before, length) = (mapped(&path), std::fs::metadata(&path).unwrap().len());
        assert_eq!(before.len(), 1);
        writer.execute_batch("DELETE FROM t; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        assert!(std::fs::metadata(&path).unwrap().len() < length / 4);
        assert_eq!(sums(&reader).0, 0);
        let cut = mapped(&path);
        assert!(cut.iter().all(|size| size < &before[0]), "{before:?} {cut:?}");
        for n in 2..6 {
            write(&writer, n, 60);
            assert_eq!(sums(&reader), sums(&writer), "{n}");
        }
        assert!(std::fs::metadata(&path).unwrap().len() > length);
        let whole: String = reader.query_row("PRAGMA integrity_check", (), |row| row.get(0)).unwrap();
        assert_eq!((whole.as_str(), mapped(&path).len()), ("ok", 1));
    }
}

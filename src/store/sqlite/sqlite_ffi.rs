//! The SQLite library: its version and configuration, and the calls that no safe binding offers. Outside of tests, the module `store` has
//! no other `unsafe`.

use std::{
    ffi::{CStr, c_int},
    sync::OnceLock,
};

use libsqlite3_sys as ffi;
use rusqlite::Connection;

use crate::store::error::{Error, Result};

/// The oldest SQLite version that this program can use: the first with `PRAGMA wal_checkpoint(NOOP)`, which reports the length of the WAL.
const OLDEST: c_int = 3_051_000;

/// How many bytes of a savepoint SQLite keeps in memory before it moves them to a temporary file. The number is slightly below the most
/// bytes that SQLite writes in one system call, so that one call is enough to move them.
const SAVEPOINT_BYTES: c_int = 131_000;

/// Checks SQLite's version and configures the library, once in a process and before the first connection. A missing setting costs only
/// time, and is logged.
pub(in crate::store) fn prepare() -> Result<()> {
    static PREPARED: OnceLock<Option<String>> = OnceLock::new();
    let refused = PREPARED.get_or_init(|| {
        // SAFETY: the call has no arguments and touches no state.
        let version = unsafe { ffi::sqlite3_libversion_number() };
        if version < OLDEST {
            return Some(format!("counterpart needs SQLite 3.51 or newer, and this build has {}", version_name(version)));
        }
        for missing in configure().into_iter().chain(compiled_without()) {
            tracing::warn!("{missing}");
        }
        None
    });
    refused.as_ref().map_or(Ok(()), |reason| Err(Error::Unavailable(reason.clone())))
}

fn version_name(number: c_int) -> String {
    format!("{}.{}.{}", number / 1_000_000, number / 1000 % 1000, number % 1000)
}

/// Configures SQLite. Returns what is missing, and what that costs, if SQLite was in use already.
fn configure() -> Option<&'static str> {
    // SAFETY: both options take one int. SQLite refuses the options once it is in use, and then changes nothing. If it accepts them, no
    // other thread is running SQLite code.
    let codes = unsafe {
        [
            ffi::sqlite3_config(ffi::SQLITE_CONFIG_MEMSTATUS, 0 as c_int),
            ffi::sqlite3_config(ffi::SQLITE_CONFIG_STMTJRNL_SPILL, SAVEPOINT_BYTES),
        ]
    };
    codes.iter().any(|code| *code != ffi::SQLITE_OK).then_some(
        "SQLite was in use before it was configured: writes of more than 64 KB go through a temporary file, and threads share a lock for \
         each allocation",
    )
}

/// Returns the options without which SQLite was compiled, and what that costs.
fn compiled_without() -> Vec<&'static str> {
    let has = |option: &CStr| {
        // SAFETY: the text ends with a zero byte, and the call keeps no pointer to it.
        unsafe { ffi::sqlite3_compileoption_used(option.as_ptr()) != 0 }
    };
    let mut missing = Vec::new();
    if has(c"ENABLE_MEMORY_MANAGEMENT") {
        missing.push(
            "SQLite was compiled with SQLITE_ENABLE_MEMORY_MANAGEMENT: all connections share one lock for their pages; build with the flags \
             of .cargo/config.toml",
        );
    }
    // SQLite does not report this option, so the flags of the build are searched for it.
    if !option_env!("LIBSQLITE3_FLAGS").is_some_and(|flags| flags.contains("HAVE_FDATASYNC=1")) {
        missing.push(
            "SQLite was compiled without HAVE_FDATASYNC: each commit also waits for the time stamps of its log; build with the flags of \
             .cargo/config.toml",
        );
    }
    missing
}

/// Returns a number that is not 0 while a foreign key of the open transaction refers to a missing row. SQLite itself checks this at the
/// commit.
pub(in crate::store) fn open_references(connection: &Connection) -> Result<i32> {
    let (mut open, mut highest) = (0, 0);
    // SAFETY: the handle belongs to a connection that is borrowed for the length of the call; the two numbers outlive the call.
    let code =
        unsafe { ffi::sqlite3_db_status(connection.handle(), ffi::SQLITE_DBSTATUS_DEFERRED_FKS, &raw mut open, &raw mut highest, 0) };
    succeeded(code).map(|()| open)
}

/// Waits until everything that was written to the database's file is on disk.
pub(in crate::store) fn sync_file(connection: &Connection) -> Result<()> {
    let mut file: *mut ffi::sqlite3_file = std::ptr::null_mut();
    // SAFETY: the handle belongs to a connection that is borrowed for the length of the calls, and the connection's file stays open during
    // that time; no other thread uses this connection, and the file's own methods are called as SQLite calls them.
    let code = unsafe {
        let got = ffi::sqlite3_file_control(connection.handle(), c"main".as_ptr(), ffi::SQLITE_FCNTL_FILE_POINTER, (&raw mut file).cast());
        match file.as_ref().and_then(|file| file.pMethods.as_ref()).and_then(|methods| methods.xSync) {
            Some(sync) if got == ffi::SQLITE_OK => sync(file, ffi::SQLITE_SYNC_NORMAL),
            _ => ffi::SQLITE_MISUSE,
        }
    };
    succeeded(code)
}

fn succeeded(code: c_int) -> Result<()> {
    if code == ffi::SQLITE_OK { Ok(()) } else { Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None).into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_named_as_sqlite_names_it() {
        assert_eq!(version_name(3_051_003), "3.51.3");
        assert_eq!(version_name(ffi::SQLITE_VERSION_NUMBER), ffi::SQLITE_VERSION.to_str().unwrap());
    }

    #[test]
    fn the_sqlite_build_has_all_required_options() {
        assert_eq!(compiled_without(), [""; 0]);
        prepare().unwrap();
    }

    /// Runs in a process of its own, since the configuration succeeds only before a process first uses SQLite.
    #[test]
    fn the_library_is_configured_before_its_first_use() {
        let program = std::env::current_exe().unwrap();
        let (_crate, module) = module_path!().split_once("::").unwrap();
        let name = format!("{module}::sqlite_can_be_configured_only_before_its_first_use");
        let ended = std::process::Command::new(program).args([&name, "--exact", "--ignored"]).output().unwrap();
        let printed = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success() && printed.contains(" 1 passed"), "{printed}");
    }

    #[test]
    #[ignore = "runs in a process of its own, which another test starts"]
    fn sqlite_can_be_configured_only_before_its_first_use() {
        assert_eq!(configure(), None);
        Connection::open_in_memory().unwrap();
        assert!(configure().is_some());
    }
}

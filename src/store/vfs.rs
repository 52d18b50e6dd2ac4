//! What stands between SQLite and its files: a VFS in front of SQLite's own, which is how SQLite lets others stand there.
//!
//! All that is done with a file is asked of the file behind, which SQLite's own VFS opened, but for what `log` does for a write-ahead
//! log. All other files are opened by SQLite's own, and have nothing of this.
//!
//! Called by `sqlite`, whose connections name it, and by `writer`. SeaORM's have SQLite's own: both go by
//! the same locks, which its own keeps by file.

use std::{
    ffi::{CStr, c_int, c_void},
    ptr,
    sync::{
        LazyLock,
        atomic::{AtomicPtr, Ordering},
    },
};

use libsqlite3_sys as ffi;

use super::{Error, Result};

/// Calls a method of the file behind.
macro_rules! ask {
    ($file:expr, $method:ident, $missing:expr $(, $argument:expr)*) => {{
        let behind = behind($file);
        match (*behind).pMethods.as_ref().and_then(|methods| methods.$method) {
            Some(method) => method(behind $(, $argument)*),
            None => $missing,
        }
    }};
}

/// Methods of the file behind, what has to be done before, and what they return where it has none.
macro_rules! methods {
    ($($before:ident $name:ident($($argument:ident: $kind:ty),*) = $method:ident or $missing:expr;)*) => {$(
        unsafe extern "C" fn $name(file: *mut ffi::sqlite3_file $(, $argument: $kind)*) -> c_int {
            match $before(file) {
                ffi::SQLITE_OK => unsafe { ask!(file, $method, $missing $(, $argument)*) },
                code => code,
            }
        }
    )*};
}

mod log;

pub(super) use log::gathered;

const NAME: &CStr = c"counterpart";

/// The name of the VFS.
pub(super) fn vfs() -> Result<&'static CStr> {
    static REGISTERED: LazyLock<c_int> = LazyLock::new(register);
    match *REGISTERED {
        ffi::SQLITE_OK => Ok(NAME),
        code => Err(Error::Unavailable(format!("SQLite does not take a VFS (code {code})"))),
    }
}

/// SQLite's own, as it was when the room for its files was reckoned.
static OWN: AtomicPtr<ffi::sqlite3_vfs> = AtomicPtr::new(ptr::null_mut());

fn register() -> c_int {
    // SAFETY: without a name SQLite is asked for its default, which is there for good, as is the copy. The copy's functions are the
    // ones of its own, which go by what the copy has too, but for `open`.
    unsafe {
        let own = ffi::sqlite3_vfs_find(ptr::null());
        OWN.store(own, Ordering::Release);
        let Some(own) = own.as_ref() else { return ffi::SQLITE_ERROR };
        let copy = ffi::sqlite3_vfs {
            szOsFile: own.szOsFile + size_of::<File>() as c_int,
            zName: NAME.as_ptr(),
            pNext: ptr::null_mut(),
            xOpen: Some(open),
            ..*own
        };
        ffi::sqlite3_vfs_register(Box::into_raw(Box::new(copy)), 0)
    }
}

/// A file as SQLite sees it. The file of its own VFS, which has numbers of eight bytes, stands behind it in the same piece of memory.
#[repr(C, align(8))]
struct File {
    base: ffi::sqlite3_file,
}

/// The file behind.
///
/// SAFETY: `file` is a [`File`] that [`open`] made.
unsafe fn behind(file: *mut ffi::sqlite3_file) -> *mut ffi::sqlite3_file {
    unsafe { file.cast::<File>().add(1).cast() }
}

/// SAFETY: SQLite calls it with room for [`File`] and the file behind.
unsafe extern "C" fn open(
    _: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    told: *mut c_int,
) -> c_int {
    unsafe {
        let own = OWN.load(Ordering::Acquire);
        let Some(open) = own.as_ref().and_then(|own| own.xOpen) else { return ffi::SQLITE_CANTOPEN };
        let methods = match flags {
            _ if flags & ffi::SQLITE_OPEN_WAL != 0 => &raw const log::METHODS,
            _ if flags & ffi::SQLITE_OPEN_MAIN_DB != 0 => &raw const PLAIN,
            _ => return open(own, name, file, flags, told),
        };
        let behind = behind(file);
        (*behind).pMethods = ptr::null();
        let code = open(own, name, behind, flags, told);
        (*file).pMethods = if (*behind).pMethods.is_null() { ptr::null() } else { methods };
        code
    }
}

/// Methods that ask the file behind, whatever the file.
const ASKING: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 3,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: Some(fetch),
    xUnfetch: Some(unfetch),
};

/// The methods of a database.
static PLAIN: ffi::sqlite3_io_methods = ASKING;

fn nothing(_: *mut ffi::sqlite3_file) -> c_int {
    ffi::SQLITE_OK
}

// SAFETY, here and in the modules: SQLite calls them, with a file that `open` made and arguments that the file behind takes.
methods! {
    nothing close() = xClose or ffi::SQLITE_OK;
    nothing read(into: *mut c_void, count: c_int, at: i64) = xRead or ffi::SQLITE_IOERR_READ;
    nothing write(bytes: *const c_void, count: c_int, at: i64) = xWrite or ffi::SQLITE_IOERR_WRITE;
    nothing truncate(size: i64) = xTruncate or ffi::SQLITE_IOERR_TRUNCATE;
    nothing sync(flags: c_int) = xSync or ffi::SQLITE_IOERR_FSYNC;
    nothing file_size(size: *mut i64) = xFileSize or ffi::SQLITE_IOERR_FSTAT;
    nothing lock(level: c_int) = xLock or ffi::SQLITE_OK;
    nothing unlock(level: c_int) = xUnlock or ffi::SQLITE_OK;
    nothing check_reserved_lock(held: *mut c_int) = xCheckReservedLock or ffi::SQLITE_OK;
    nothing file_control(op: c_int, argument: *mut c_void) = xFileControl or ffi::SQLITE_NOTFOUND;
    nothing sector_size() = xSectorSize or 0;
    nothing device_characteristics() = xDeviceCharacteristics or 0;
    nothing shm_map(page: c_int, size: c_int, extend: c_int, told: *mut *mut c_void) = xShmMap or ffi::SQLITE_IOERR_SHMMAP;
    nothing shm_lock(offset: c_int, count: c_int, flags: c_int) = xShmLock or ffi::SQLITE_IOERR_SHMLOCK;
    nothing shm_unmap(delete: c_int) = xShmUnmap or ffi::SQLITE_OK;
    nothing fetch(at: i64, count: c_int, told: *mut *mut c_void) = xFetch or ffi::SQLITE_OK;
    nothing unfetch(at: i64, page: *mut c_void) = xUnfetch or ffi::SQLITE_OK;
}

unsafe extern "C" fn shm_barrier(file: *mut ffi::sqlite3_file) {
    unsafe { ask!(file, xShmBarrier, ()) }
}

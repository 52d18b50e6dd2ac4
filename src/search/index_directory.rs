//! The directory of the search indexes (`--index-dir`). Each process has an index of its own, in a folder that the process locks.
//!
//! The folders are named by database and number. A process takes the lowest number that no other process has locked, and continues with the
//! index that the folder contains. The lock is the operating system's: it ends with the process, even after a crash.

use std::{
    fs::{self, File, TryLockError, create_dir_all, read_dir},
    io,
    path::{Path, PathBuf},
};

/// The limit of folders, and so of processes, per index directory and database.
const MAX_INDEX_FOLDERS: u32 = 64;

/// A locked folder; dropping it releases the lock.
#[derive(Debug)]
pub struct Folder {
    pub path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Locks the free folder with the lowest number. With `first`, as in `counterpart reindex`, only folder number 1 is permitted. Fails if
    /// no permitted folder is free.
    pub fn claim(parent: &Path, database: &str, first: bool) -> io::Result<Self> {
        create_dir_all(parent)?;
        for number in 1..=if first { 1 } else { MAX_INDEX_FOLDERS } {
            let name = format!("{database}-{number}");
            let lock = File::options().create(true).truncate(false).write(true).open(parent.join(format!("{name}.lock")))?;
            match lock.try_lock() {
                Ok(()) => return Ok(Self { path: parent.join(name), _lock: lock }),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::ResourceBusy, format!("every index below `{}` is in use by another process", parent.display())))
    }
}

/// Returns the total size of the files in a folder, in bytes. A file that is deleted during the count is not counted.
pub fn bytes_of(folder: &Path) -> io::Result<u64> {
    let files = match read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        files => files?,
    };
    Ok(files.filter_map(|file| file.ok()?.metadata().ok()).filter(fs::Metadata::is_file).map(|file| file.len()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_has_a_folder_of_its_own() {
        let parent = tempfile::tempdir().unwrap();
        let one = Folder::claim(parent.path(), "d", false).unwrap();
        let two = Folder::claim(parent.path(), "d", false).unwrap();
        assert_ne!(one.path, two.path);
        assert!(Folder::claim(parent.path(), "d", true).is_err());
        assert_ne!(Folder::claim(parent.path(), "e", true).unwrap().path, one.path);
        let path = one.path.clone();
        drop(one);
        assert_eq!(Folder::claim(parent.path(), "d", false).unwrap().path, path);
    }
}

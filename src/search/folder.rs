//! Where an index lives: a folder that one process has to itself.
//!
//! Below `--index-dir` stand folders named by database and number. A process takes the lowest number that no other has
//! locked, and finds there what the process before it left. The lock is the operating system's: it ends with the process,
//! however that ends.

use std::{
    fs::{File, TryLockError, create_dir_all},
    io,
    path::{Path, PathBuf},
};

/// Processes of one machine on one database.
const MOST: u32 = 64;

/// A folder of one's own, until it is dropped.
#[derive(Debug)]
pub struct Folder {
    pub path: PathBuf,
    _lock: File,
}

impl Folder {
    /// The first free folder; only the very first if `first`.
    pub fn claim(parent: &Path, database: &str, first: bool) -> io::Result<Self> {
        create_dir_all(parent)?;
        for number in 1..=if first { 1 } else { MOST } {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_has_its_own() {
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

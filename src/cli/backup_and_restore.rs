//! `counterpart backup` and `counterpart restore`: copy a SQLite database into a file, and replace a database by such a copy.

use std::path::PathBuf;

use clap::Args;

use super::{CliResult, Failed, note, print, progress};
use crate::{
    config::Config,
    store::backup_and_restore::{self, Restored, back_up, restore},
};

#[derive(Args, Debug)]
pub struct Backup {
    /// The file to write; it must not exist yet
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Args, Debug)]
pub struct Restore {
    /// The back-up file
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Backup {
    pub fn run(self, config: &Config) -> CliResult {
        let database = sqlite(config, "pg_dump")?;
        shown(|progress| back_up(&database, &self.file, progress))?;
        print(&format!("backed up to `{}`", self.file.display()))?;
        if let Some(key) = config.own_key_file().filter(|key| key.exists()) {
            note(&format!("only the key in `{}` decrypts the secrets of the back-up: store a copy of that key elsewhere", key.display()));
        }
        Ok(())
    }
}

impl Restore {
    pub fn run(self, config: &Config) -> CliResult {
        let database = sqlite(config, "pg_restore")?;
        let Restored { former } = shown(|progress| restore(&self.file, &database, progress))?;
        print(&format!("`{}` is restored from `{}`", database.display(), self.file.display()))?;
        if let Some(former) = former {
            note(&format!("the former database is kept as `{}`", former.display()));
        }
        if let Some(key) = config.own_key_file().filter(|key| !key.exists()) {
            note(&format!(
                "only the key of the database that was backed up decrypts its secrets: put that key into `{}` before you start the server",
                key.display()
            ));
        }
        Ok(())
    }
}

/// Returns the path of the SQLite file. Fails if the database is on PostgreSQL; the error then names the PostgreSQL program `instead`.
fn sqlite(config: &Config, instead: &str) -> Result<PathBuf, Failed> {
    let reason = || Failed(format!("this command works on SQLite only; on PostgreSQL use `{instead}` (docs/operating.md, Back-ups)"));
    config.sqlite_path().ok_or_else(reason)
}

/// Runs `work` with a progress bar.
fn shown<T>(
    work: impl FnOnce(Option<backup_and_restore::Progress<'_>>) -> Result<T, backup_and_restore::BackupError>,
) -> Result<T, Failed> {
    let (bar, progress) = progress::bar();
    let done = work(progress.as_deref());
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    Ok(done?)
}

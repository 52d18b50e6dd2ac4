//! `counterpart backup` and `counterpart restore`: a copy of a SQLite database, and putting one in its place.

use std::path::PathBuf;

use clap::Args;

use super::{CliResult, Failed, note, print, progress};
use crate::{
    config::Config,
    store::backup::{self, Restored, back_up, restore},
};

#[derive(Args, Debug)]
pub struct Backup {
    /// The file to write, which must not be there yet
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Args, Debug)]
pub struct Restore {
    /// The back-up
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Backup {
    pub fn run(self, config: &Config) -> CliResult {
        let database = sqlite(config, "pg_dump")?;
        shown(|progress| back_up(&database, &self.file, progress))?;
        print(&format!("backed up to `{}`", self.file.display()))?;
        if let Some(key) = config.own_key_file().filter(|key| key.exists()) {
            note(&format!("its secrets can only be read with the key in `{}`: keep a copy of that in another place", key.display()));
        }
        Ok(())
    }
}

impl Restore {
    pub fn run(self, config: &Config) -> CliResult {
        let database = sqlite(config, "pg_restore")?;
        let Restored { former } = shown(|progress| restore(&self.file, &database, progress))?;
        print(&format!("`{}` is now what `{}` holds", database.display(), self.file.display()))?;
        if let Some(former) = former {
            note(&format!("what was there before is kept as `{}`", former.display()));
        }
        if let Some(key) = config.own_key_file().filter(|key| !key.exists()) {
            note(&format!(
                "its secrets can only be read with the key that it was made with: put that in `{}` before you serve it",
                key.display()
            ));
        }
        Ok(())
    }
}

/// The path of the SQLite file.
fn sqlite(config: &Config, instead: &str) -> Result<PathBuf, Failed> {
    let reason = || Failed(format!("this command is for SQLite; for PostgreSQL there is `{instead}` (docs/operating.md, Back-ups)"));
    config.sqlite_path().ok_or_else(reason)
}

/// Runs with a progress bar.
fn shown<T>(work: impl FnOnce(Option<backup::Progress<'_>>) -> Result<T, backup::BackupError>) -> Result<T, Failed> {
    let (bar, progress) = progress::bar();
    let done = work(progress.as_deref());
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    Ok(done?)
}

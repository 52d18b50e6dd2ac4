//! `counterpart export`: writes a store's records as NDJSON.

use std::{
    fs,
    io::{self, BufWriter, Write, stdout},
    path::{Path, PathBuf},
};

use clap::Args;
use tempfile::NamedTempFile;

use super::{CliResult, Failed};
use crate::{
    app::open_migrated,
    config::Config,
    domain::ids::StoreId,
    service::export::{self, ExportError},
    store::Db,
};

#[derive(Args, Debug)]
pub struct ExportArgs {
    /// The store to export
    #[arg(long, env = "COUNTERPART_STORE", value_name = "ID")]
    store: String,
    /// The output file, written atomically, or a pipe or device; `-` for standard output
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
}

impl ExportArgs {
    pub async fn run(self, config: &Config) -> CliResult {
        let (db, _) = open_migrated(config).await?;
        let store = StoreId::from(self.store);
        if self.file.as_os_str() == "-" {
            stream(&db, &store, stdout()).await?;
        } else {
            let named = |error: io::Error| Failed(format!("`{}` cannot be written: {error}", self.file.display()));
            let former = match fs::metadata(&self.file) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && !self.file.is_symlink() => None,
                former => Some(former.map_err(named)?),
            };
            match former {
                // A pipe or a device is written in place. If a new file replaced it, a program that reads the pipe would get nothing.
                Some(former) if !former.is_file() => {
                    stream(&db, &store, fs::OpenOptions::new().write(true).open(&self.file).map_err(named)?).await?;
                }
                Some(former) => {
                    let target = fs::canonicalize(&self.file).map_err(named)?;
                    let file = export_to_temporary(&db, &store, &target, named).await?;
                    file.as_file().set_permissions(former.permissions()).map_err(named)?;
                    file.persist(&target).map_err(|error| named(error.error))?;
                }
                None => {
                    let file = export_to_temporary(&db, &store, &self.file, named).await?;
                    file.persist(&self.file).map_err(|error| named(error.error))?;
                }
            }
        }
        Ok(db.close().await?)
    }
}

async fn stream(db: &Db, store: &StoreId, out: impl Write + Send) -> CliResult {
    match export::run(db, store, &mut BufWriter::new(out)).await {
        // A reader that closes the pipe is not an error.
        Err(ExportError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => Ok(outcome.map(|_| ())?),
    }
}

/// Writes the export to a temporary file in the folder of the target, so that the last step is a rename within one file system.
async fn export_to_temporary(
    db: &Db,
    store: &StoreId,
    target: &Path,
    named: impl Fn(io::Error) -> Failed,
) -> Result<NamedTempFile, Failed> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = NamedTempFile::new_in(folder).map_err(&named)?;
    export::run(db, store, &mut BufWriter::new(file.as_file_mut())).await?;
    file.as_file().sync_all().map_err(named)?;
    Ok(file)
}

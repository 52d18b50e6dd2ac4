//! `counterpart export`: a store's records as NDJSON.

use std::{
    io::{self, BufWriter, stdout},
    path::{Path, PathBuf},
};

use clap::Args;

use super::{Failed, Outcome};
use crate::{
    app::open_migrated,
    config::Config,
    domain::ids::StoreId,
    service::export::{self, Failure},
};

#[derive(Args, Debug)]
pub struct Export {
    /// The store whose records are wanted
    #[arg(long, env = "COUNTERPART_STORE", value_name = "ID")]
    store: String,
    /// The file to write, whole or not at all; `-` for standard output
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
}

impl Export {
    pub async fn run(self, config: &Config) -> Outcome {
        let db = open_migrated(config, None).await?;
        let store = StoreId::from(self.store);
        if self.file.as_os_str() == "-" {
            match export::run(&db, &store, &mut BufWriter::new(stdout())).await {
                // Whoever read has seen enough.
                Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {}
                outcome => {
                    outcome?;
                }
            }
        } else {
            // Beside the file, so that the last step is a rename within one file system.
            let folder = self.file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let named = |error: io::Error| Failed(format!("`{}` cannot be written: {error}", self.file.display()));
            let mut file = tempfile::NamedTempFile::new_in(folder).map_err(named)?;
            export::run(&db, &store, &mut BufWriter::new(file.as_file_mut())).await?;
            file.as_file().sync_all().map_err(named)?;
            file.persist(&self.file).map_err(|error| named(error.error))?;
        }
        Ok(db.close().await?)
    }
}

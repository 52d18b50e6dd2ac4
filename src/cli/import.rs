//! `counterpart import`: reads a store's records from NDJSON.

use std::{io::stdin, path::PathBuf};

use clap::Args;

use super::{Failed, Outcome, print, progress};
use crate::{
    app::open_migrated,
    config::Config,
    domain::{clock::World, ids::StoreId},
    service::import::{self, Options, Spool, Summary},
};

#[derive(Args, Debug)]
pub struct Import {
    /// The store to import into
    #[arg(long, env = "COUNTERPART_STORE", value_name = "ID")]
    store: String,
    /// Do everything, report, and roll back
    #[arg(long, env = "COUNTERPART_DRY_RUN")]
    dry_run: bool,
    /// The input file, with lines `{"kind": …, "record": {…}}`, or `-` for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Import {
    pub async fn run(self, config: &Config) -> Outcome {
        let from_stdin = self.file.as_os_str() == "-";
        let spool = if from_stdin { Spool::copy(stdin().lock()) } else { Spool::open(&self.file) };
        let name = if from_stdin { "standard input".to_owned() } else { format!("`{}`", self.file.display()) };
        let spool = spool.map_err(|error| Failed(format!("{name} cannot be read: {error}")))?;
        let db = open_migrated(config, None).await?;

        let (bar, progress) = progress::bar();
        let options = Options { dry_run: self.dry_run, progress };
        let outcome = import::run(&db, &World::real(), &StoreId::from(self.store), spool, options).await;
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        let closed = db.close().await;
        let summary = outcome.map_err(|failure| Failed(format!("{failure}\nnothing was imported")))?;
        closed?;
        print(&report(&summary, self.dry_run))
    }
}

fn report(summary: &Summary, dry_run: bool) -> String {
    let kinds: Vec<String> = summary.counts.iter().map(|(kind, count)| format!("{} {count}", kind.name())).collect();
    let verb = if dry_run { "would import" } else { "imported" };
    let colon = if kinds.is_empty() { "" } else { ": " };
    format!("{verb} {} records{colon}{}", summary.total(), kinds.join(", "))
}

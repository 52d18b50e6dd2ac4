//! `counterpart import`: reads a store's records from NDJSON.

use std::{io::stdin, path::PathBuf};

use clap::Args;

use super::{CliResult, Failed, print, progress};
use crate::{
    app::open_migrated,
    config::{Config, switch},
    domain::ids::StoreId,
    service::import::{self, Options, RereadableInput, Summary},
};

#[derive(Args, Debug)]
pub struct ImportArgs {
    /// The store to import into
    #[arg(long, env = "COUNTERPART_STORE", value_name = "ID", required_unless_present_any = ["schema", "example"])]
    store: Option<String>,
    /// Import everything, report the counts, and roll back
    #[arg(long, env = "COUNTERPART_DRY_RUN", value_parser = switch())]
    dry_run: bool,
    /// Print the JSON Schema of a line, and import nothing
    #[arg(long, env = "COUNTERPART_SCHEMA", conflicts_with_all = ["example", "file"], value_parser = switch())]
    schema: bool,
    /// Print a small example file with a record of every kind, and import nothing
    #[arg(long, env = "COUNTERPART_EXAMPLE", conflicts_with = "file", value_parser = switch())]
    example: bool,
    /// The input file, with lines `{"kind": …, "record": {…}}`, or `-` for standard input; `--schema` and `--example` show the
    /// format
    #[arg(value_name = "FILE", required_unless_present_any = ["schema", "example"])]
    file: Option<PathBuf>,
}

impl ImportArgs {
    /// Returns whether the command only prints the schema or the example, and imports nothing.
    pub fn only_prints(&self) -> bool {
        self.schema || self.example
    }

    pub async fn run(self, config: &Config) -> CliResult {
        if self.schema {
            return print(&serde_json::to_string_pretty(&import::schema())?);
        }
        if self.example {
            return print(import::EXAMPLE.trim_end());
        }
        let (Some(file), Some(store)) = (self.file, self.store) else {
            return Err(Failed("`--store ID` and a file are needed, or `--schema` or `--example`".to_owned()));
        };
        let from_stdin = file.as_os_str() == "-";
        let spool = if from_stdin { RereadableInput::copy(stdin().lock()) } else { RereadableInput::open(&file) };
        let name = if from_stdin { "standard input".to_owned() } else { format!("`{}`", file.display()) };
        let spool = spool.map_err(|error| Failed(format!("{name} cannot be read: {error}")))?;
        let (db, clocks_and_ids) = open_migrated(config).await?;

        let (bar, progress) = progress::bar();
        let options = Options { dry_run: self.dry_run, progress };
        let outcome = import::run(&db, &clocks_and_ids, &StoreId::from(store), spool, options).await;
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
    let waited =
        summary.exclusive.map_or_else(String::new, |time| format!("\nother writers waited for {:.1} s at most", time.as_secs_f64()));
    format!("{verb} {} records{colon}{}{waited}", summary.total(), kinds.join(", "))
}

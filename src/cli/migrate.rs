//! `counterpart migrate`: migrations of the database schema.

use std::{
    io::{IsTerminal, stdin},
    num::NonZeroU32,
};

use clap::{Args, Subcommand};

use super::{CliResult, Failed, note, print};
use crate::{
    app::open,
    config::{Config, switch},
};

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Migrate {
    /// Make the tables of a sandbox: a database whose clock can be advanced, for tests. An ordinary database is refused
    #[arg(long, env = "COUNTERPART_SANDBOX", value_parser = switch())]
    sandbox: bool,

    #[command(subcommand)]
    direction: Option<MigrationDirection>,
}

#[derive(Debug, Subcommand)]
enum MigrationDirection {
    /// Apply pending migrations (the default)
    Up,
    /// Roll back the newest migrations, with all data in their tables
    Down {
        /// The number of migrations to roll back
        #[arg(long, env = "COUNTERPART_STEPS", default_value = "1", value_name = "N")]
        steps: NonZeroU32,
        /// Do not ask for confirmation
        #[arg(long, env = "COUNTERPART_YES", value_parser = switch())]
        yes: bool,
    },
    /// List all migrations and whether they are applied
    Status,
}

/// Asks for confirmation at the terminal before migrations are rolled back. Fails without a terminal.
fn confirmed(migrations: &[String]) -> Result<bool, Failed> {
    let what = format!("{}, and all data that is only in their tables and columns", migrations.join(", "));
    if !stdin().is_terminal() {
        return Err(Failed(format!("this would roll back {what}; pass `--yes` to confirm")));
    }
    note(&format!("This rolls back {what}. Continue? [y/N]"));
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

impl Migrate {
    pub fn is_up(&self) -> bool {
        matches!(self.direction, None | Some(MigrationDirection::Up))
    }

    pub async fn run(self, config: &Config) -> CliResult {
        let db = open(config).await?;
        match self.direction {
            None | Some(MigrationDirection::Up) if self.sandbox => db.migrate_sandbox_up().await?,
            None | Some(MigrationDirection::Up) => db.migrate_up().await?,
            Some(MigrationDirection::Down { steps, yes }) => {
                let applied: Vec<String> =
                    db.migrations().await?.into_iter().filter(|(_, applied)| *applied).map(|(name, _)| name).collect();
                let taken = &applied[applied.len().saturating_sub(steps.get() as usize)..];
                if !taken.is_empty() && (yes || confirmed(taken)?) {
                    db.migrate_down(steps.get()).await?;
                }
            }
            Some(MigrationDirection::Status) => {
                for (name, applied) in db.migrations().await? {
                    print(&format!("{name}\t{}", if applied { "applied" } else { "pending" }))?;
                }
            }
        }
        Ok(db.close().await?)
    }
}

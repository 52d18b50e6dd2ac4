//! `counterpart migrate`: migrations of the database schema.

use std::num::NonZeroU32;

use clap::{Args, Subcommand};

use super::{Outcome, print};
use crate::{app::open, config::Config};

#[derive(Args, Debug)]
pub struct Migrate {
    #[command(subcommand)]
    direction: Option<Direction>,
}

#[derive(Debug, Subcommand)]
enum Direction {
    /// Apply pending migrations (the default)
    Up,
    /// Roll back the newest migrations, with all data in their tables
    Down {
        /// The number of migrations
        #[arg(long, env = "COUNTERPART_STEPS", default_value = "1", value_name = "N")]
        steps: NonZeroU32,
    },
    /// List all migrations and whether they are applied
    Status,
}

impl Migrate {
    pub async fn run(self, config: &Config) -> Outcome {
        let db = open(config).await?;
        match self.direction {
            None | Some(Direction::Up) => db.migrate_up().await?,
            Some(Direction::Down { steps }) => db.migrate_down(steps.get()).await?,
            Some(Direction::Status) => {
                for (name, applied) in db.migrations().await? {
                    print(&format!("{name}\t{}", if applied { "applied" } else { "pending" }))?;
                }
            }
        }
        Ok(db.close().await?)
    }
}

//! `counterpart migrate`: the schema alone.

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
    /// Apply what is missing (what `migrate` alone does)
    Up,
    /// Take the newest migrations back, with all data in their tables
    Down {
        /// How many
        #[arg(long, env = "COUNTERPART_STEPS", default_value = "1", value_name = "N")]
        steps: NonZeroU32,
    },
    /// Show every migration and whether it was applied
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

//! `counterpart store`: management of stores.

use clap::{ArgGroup, Args, Subcommand};

use super::{Outcome, print};
use crate::{
    app::open_migrated,
    config::Config,
    domain::{clock::World, ids::StoreId},
    service::stores::{self, Settings},
};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a store; prints its id
    Create {
        /// The id of the new store
        #[arg(long, env = "COUNTERPART_ID")]
        id: String,
        /// Its name
        #[arg(long, env = "COUNTERPART_NAME")]
        name: String,
        #[command(flatten)]
        settings: Flags,
    },
    /// Change a store's settings; those not given stay
    #[command(group = ArgGroup::new("changes").args(["name", "currency", "reopen_window_hours"]).required(true).multiple(true))]
    Edit {
        /// The id of the store
        #[arg(long, env = "COUNTERPART_ID")]
        id: String,
        /// A new name
        #[arg(long, env = "COUNTERPART_NAME")]
        name: Option<String>,
        #[command(flatten)]
        settings: Flags,
    },
    /// List every store, one JSON object per line
    List,
}

#[derive(Args, Debug)]
pub struct Flags {
    /// ISO 4217 code of the store's currency [default for a new store: THB]
    #[arg(long, env = "COUNTERPART_CURRENCY", value_name = "CODE")]
    currency: Option<String>,
    /// Hours after closing within which an inbound message reopens a ticket: 0 never, -1 always [default for a new store: 24]
    #[arg(
        long,
        env = "COUNTERPART_REOPEN_WINDOW_HOURS",
        value_name = "HOURS",
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(i64).range(-1..)
    )]
    reopen_window_hours: Option<i64>,
}

impl Flags {
    fn settings(self, name: Option<String>) -> Settings {
        Settings { name, currency: self.currency, reopen_window_hours: self.reopen_window_hours }
    }
}

impl Command {
    pub async fn run(self, config: &Config) -> Outcome {
        let db = open_migrated(config, None).await?;
        match self {
            Self::Create { id, name, settings } => {
                let store = stores::create(&db, &World::real(), StoreId::from(id), settings.settings(Some(name))).await?;
                print(store.id.as_str())?;
            }
            Self::Edit { id, name, settings } => {
                stores::edit(&db, &StoreId::from(id), settings.settings(name)).await?;
            }
            Self::List => {
                for store in db.stores().await? {
                    let line = serde_json::json!({
                        "id": store.id,
                        "name": store.name,
                        "currency": store.currency,
                        "reopenWindowHours": store.reopen_window_hours,
                        "createdAt": store.created_at,
                    });
                    print(&line.to_string())?;
                }
            }
        }
        Ok(db.close().await?)
    }
}

//! `counterpart bridge`: HTTP endpoints that deliver the messages of channel accounts.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::{Outcome, print};
use crate::{
    app::{open_migrated, service},
    config::{Config, switch},
    domain::{
        bridges::Bridge,
        clock::World,
        ids::{AccountId, StoreId},
        settings::Editor,
        webhooks::SigningSecret,
    },
    http::settings::BridgeView,
    service::Service,
};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Set the endpoint that delivers the messages of an account; prints the signing secret, which is not shown again, or
    /// nothing if the account already had a bridge
    Set {
        #[command(flatten)]
        place: Place,
        /// The endpoint: an https:// URL
        #[arg(long, env = "COUNTERPART_URL")]
        url: String,
        #[command(flatten)]
        output: Output,
    },
    /// List a store's bridges, one JSON object per line
    List {
        #[command(flatten)]
        store: Store,
    },
    /// Rotate the secret of a bridge; prints the new one like `set`; the former one also signs for 24 hours
    Rotate {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        output: Output,
    },
    /// Remove a bridge, at once and permanently
    Remove {
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Args, Debug)]
pub struct Store {
    /// The store
    #[arg(long, env = "COUNTERPART_STORE", value_name = "ID")]
    store: String,
}

#[derive(Args, Debug)]
pub struct Place {
    #[command(flatten)]
    store: Store,
    /// The channel account
    #[arg(long, env = "COUNTERPART_ACCOUNT", value_name = "ID")]
    account: String,
}

#[derive(Args, Debug)]
pub struct Output {
    /// Print the bridge, with its secret if that is new, as one JSON object
    #[arg(long, env = "COUNTERPART_JSON", value_parser = switch())]
    json: bool,
}

impl Command {
    pub async fn run(self, config: &Config) -> Outcome {
        let db = open_migrated(config, None).await?;
        self.execute(&service(db.clone(), World::real()).delivering_to(config.targets())).await?;
        Ok(db.close().await?)
    }

    async fn execute(self, service: &Service) -> Outcome {
        match self {
            Self::Set { place, url, output } => {
                let (bridge, secret) = service.set_bridge(&place.editor(), &place.account(), &url).await?;
                output.print(bridge, secret.as_ref())
            }
            Self::List { store } => {
                service.bridges(&StoreId::from(store.store)).await?.into_iter().try_for_each(|bridge| print(&shown(bridge)?.to_string()))
            }
            Self::Rotate { place, output } => {
                let (bridge, secret) = service.rotate_bridge(&place.editor(), &place.account()).await?;
                output.print(bridge, Some(&secret))
            }
            Self::Remove { place } => Ok(service.remove_bridge(&place.editor(), &place.account()).await?),
        }
    }
}

impl Place {
    fn editor(&self) -> Editor {
        Editor::command_line(self.store.store.as_str().into())
    }

    fn account(&self) -> AccountId {
        AccountId::from(self.account.as_str())
    }
}

impl Output {
    fn print(&self, bridge: Bridge, secret: Option<&SigningSecret>) -> Outcome {
        let secret = secret.map(SigningSecret::reveal);
        if !self.json {
            return secret.map_or(Ok(()), |secret| print(&secret));
        }
        let mut line = shown(bridge)?;
        if let Some(secret) = secret {
            line["secret"] = secret.into();
        }
        print(&line.to_string())
    }
}

/// A bridge without its secret.
fn shown(bridge: Bridge) -> serde_json::Result<Value> {
    serde_json::to_value(BridgeView::from(bridge))
}

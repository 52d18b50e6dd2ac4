//! `counterpart bridge`: manages bridges. A bridge is an HTTP endpoint of the operator: the server sends it the outbound messages of a
//! channel account, and the bridge delivers them to the channel.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::{CliResult, StoreArg, print};
use crate::{
    app::{open_migrated, service},
    config::{Config, switch},
    domain::{
        channel_bridges::Bridge,
        ids::{AccountId, StoreId},
        settings_access::{Editor, FormerSecrets},
        webhooks::SigningSecret,
    },
    http::settings::BridgeView,
    service::Service,
};

#[derive(Debug, Subcommand)]
pub enum BridgeCommand {
    /// Set the endpoint that delivers the messages of an account; prints the signing secret, which is not shown again, or
    /// nothing if the account already had a bridge
    Set {
        #[command(flatten)]
        place: BridgeArgs,
        /// The endpoint: an https:// URL
        #[arg(long, env = "COUNTERPART_URL")]
        url: String,
        #[command(flatten)]
        output: BridgeOutput,
    },
    /// List a store's bridges, one JSON object per line
    List {
        #[command(flatten)]
        store: StoreArg,
    },
    /// Rotate the secret of a bridge; prints the new secret. For 24 hours, requests are signed with the former secret in addition
    Rotate {
        #[command(flatten)]
        place: BridgeArgs,
        /// End the former secrets immediately, for example because they have leaked
        #[arg(long, env = "COUNTERPART_END_FORMER", value_parser = switch())]
        end_former: bool,
        #[command(flatten)]
        output: BridgeOutput,
    },
    /// Remove a bridge immediately and permanently
    Remove {
        #[command(flatten)]
        place: BridgeArgs,
    },
}

#[derive(Args, Debug)]
pub struct BridgeArgs {
    #[command(flatten)]
    store: StoreArg,
    /// The id of the channel account
    #[arg(long, env = "COUNTERPART_ACCOUNT", value_name = "ID")]
    account: String,
}

#[derive(Args, Debug)]
pub struct BridgeOutput {
    /// Print the bridge, with its secret if that is new, as one JSON object
    #[arg(long, env = "COUNTERPART_JSON", value_parser = switch())]
    json: bool,
}

impl BridgeCommand {
    pub async fn run(self, config: &Config) -> CliResult {
        let (db, clocks_and_ids) = open_migrated(config).await?;
        self.execute(&service(db.clone(), clocks_and_ids).delivering_to(config.targets())).await?;
        Ok(db.close().await?)
    }

    async fn execute(self, service: &Service) -> CliResult {
        match self {
            Self::Set { place, url, output } => {
                let (bridge, secret) = service.set_bridge(&place.editor(), &place.account(), &url).await?;
                output.print(bridge, secret.as_ref())
            }
            Self::List { store } => {
                service.bridges(&StoreId::from(store.store)).await?.into_iter().try_for_each(|bridge| print(&shown(bridge)?.to_string()))
            }
            Self::Rotate { place, end_former, output } => {
                let (bridge, secret) = service.rotate_bridge(&place.editor(), &place.account(), FormerSecrets::of(end_former)).await?;
                output.print(bridge, Some(&secret))
            }
            Self::Remove { place } => Ok(service.remove_bridge(&place.editor(), &place.account()).await?),
        }
    }
}

impl BridgeArgs {
    fn editor(&self) -> Editor {
        Editor::command_line(self.store.store.as_str().into())
    }

    fn account(&self) -> AccountId {
        AccountId::from(self.account.as_str())
    }
}

impl BridgeOutput {
    fn print(&self, bridge: Bridge, secret: Option<&SigningSecret>) -> CliResult {
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

/// Returns a bridge as JSON, without its secret.
fn shown(bridge: Bridge) -> serde_json::Result<Value> {
    serde_json::to_value(BridgeView::from(bridge))
}

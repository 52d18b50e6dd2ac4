//! `counterpart settings`: issues and revokes the links and tokens that give access to the settings of a store.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{CliResult, print};
use crate::{
    app::{open_migrated, service},
    config::{Config, switch},
    domain::{
        api_keys::Secret,
        ids::{StoreId, UserId},
        settings_access::{CredentialKind, Editor, Manager, link_url},
        token_grants::GrantSet,
    },
    http::machinery::params::ScalarParam,
    service::Service,
};

#[derive(Debug, Subcommand)]
pub enum SettingsCommand {
    /// Print a link that opens the settings page, once and within 15 minutes
    Link {
        #[command(flatten)]
        whose: Whose,
        /// The public base URL of the server, for browsers
        #[arg(long, env = "COUNTERPART_PUBLIC_URL", default_value = "http://127.0.0.1:8080", value_name = "URL")]
        public_url: String,
        #[command(flatten)]
        output: LinkOutput,
    },
    /// Print a token for programs, valid for 90 days, to be sent as `authorization: Bearer TOKEN`
    Token {
        #[command(flatten)]
        whose: Whose,
        /// What the token permits, separated by commas: `events` reads events, records and their changes; `inbound` delivers inbound
        /// messages; `keys` manages API keys; `webhooks` manages webhooks and bridges; `team` lists and removes users, and manages access
        /// to accounts, moves of tickets, escalation and drafts; `audit` reads the audit log; `all` permits everything
        #[arg(long, env = "COUNTERPART_CAN", default_value_t = GrantSet::EVERYTHING, value_name = "LIST")]
        can: GrantSet,
        #[command(flatten)]
        output: LinkOutput,
    },
    /// End every link, session and token of a user; prints how many were ended
    Revoke {
        #[command(flatten)]
        whose: Whose,
    },
}

#[derive(Args, Debug)]
pub struct Whose {
    /// The id of the store
    #[arg(long, env = "COUNTERPART_STORE", value_name = "ID")]
    store: String,
    /// The userId of an owner or admin of the store
    #[arg(long, env = "COUNTERPART_USER", value_name = "USERID", value_parser = user_id)]
    user: UserId,
}

#[derive(Args, Debug)]
pub struct LinkOutput {
    /// Print one JSON object, which includes the expiry
    #[arg(long, env = "COUNTERPART_JSON", value_parser = switch())]
    json: bool,
}

/// Parses a UUID in upper or lower case, as in requests to the API.
fn user_id(text: &str) -> Result<UserId, String> {
    ScalarParam::parse(text)
}

impl SettingsCommand {
    pub async fn run(self, config: &Config) -> CliResult {
        let (db, clocks_and_ids) = open_migrated(config).await?;
        self.execute(&service(db.clone(), clocks_and_ids)).await?;
        Ok(db.close().await?)
    }

    async fn execute(self, service: &Service) -> CliResult {
        match self {
            Self::Link { whose, public_url, output } => {
                let (secret, manager) = whose.issue(service, CredentialKind::Link, GrantSet::EVERYTHING).await?;
                output.print("link", link_url(&public_url, &secret), &manager)
            }
            Self::Token { whose, can, output } => {
                let (secret, manager) = whose.issue(service, CredentialKind::Token, can).await?;
                output.print("token", secret.reveal().to_owned(), &manager)
            }
            Self::Revoke { whose } => print(&service.revoke_credentials(&whose.editor(), &whose.user).await?.to_string()),
        }
    }
}

impl Whose {
    fn editor(&self) -> Editor {
        Editor::command_line(StoreId::from(self.store.as_str()))
    }

    async fn issue(&self, service: &Service, kind: CredentialKind, can: GrantSet) -> Result<(Secret, Manager), super::Failed> {
        let (secret, manager) = service.issue(&self.editor(), &self.user, kind, can).await?;
        if !manager.may_manage() {
            tracing::warn!(user = %self.user, role = manager.role, "only owners and admins see the settings; this user will be refused");
        }
        Ok((secret, manager))
    }
}

impl LinkOutput {
    fn print(&self, name: &str, text: String, manager: &Manager) -> CliResult {
        if !self.json {
            return print(&text);
        }
        let Manager { store_id: _, user_id, role, expires_at, can } = manager;
        print(&json!({ name: text, "userId": user_id, "role": role, "expiresAt": expires_at, "can": can.names() }).to_string())
    }
}

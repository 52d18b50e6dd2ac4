//! `counterpart key`: management of API keys.

use clap::{ArgGroup, Args, Subcommand};
use serde_json::{Value, json};

use super::{CliResult, StoreArg, print};
use crate::{
    app::{open_migrated, service},
    config::{Config, switch},
    domain::{
        api_key_scopes::{Scope, ScopeError, ScopeSet},
        api_keys::{ApiKey, Secret},
        ids::{KeyId, UserId},
        settings_access::{Editor, FormerSecrets},
        time::Timestamp,
    },
    http::machinery::params::ScalarParam,
    service::{Service, keys::NewKey},
};

#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Create a key; prints its secret, which is not shown again
    Create {
        #[command(flatten)]
        store: StoreArg,
        /// The name of the key, for example its purpose
        #[arg(long, env = "COUNTERPART_NAME")]
        name: String,
        /// The scopes of the key, separated by commas; a write scope includes the read scope of the same records
        #[arg(long, env = "COUNTERPART_SCOPES", value_delimiter = ',', value_parser = scope, required = true, value_name = "SCOPE,…")]
        scopes: Vec<Scope>,
        /// The userId of the user for whom the key acts [default: the store's oldest owner]
        #[arg(long, env = "COUNTERPART_USER", value_name = "USERID", value_parser = user_id)]
        user: Option<UserId>,
        #[command(flatten)]
        output: KeyOutput,
    },
    /// List a store's keys, one JSON object per line
    List {
        #[command(flatten)]
        store: StoreArg,
    },
    /// Change a key's name or scopes; the secret stays
    #[command(group = ArgGroup::new("changes").args(["name", "scopes"]).required(true).multiple(true))]
    Edit {
        #[command(flatten)]
        key: KeyArgs,
        /// The new name
        #[arg(long, env = "COUNTERPART_NAME")]
        name: Option<String>,
        /// The complete new list of scopes, separated by commas
        #[arg(long, env = "COUNTERPART_SCOPES", value_delimiter = ',', value_parser = scope, value_name = "SCOPE,…")]
        scopes: Option<Vec<Scope>>,
    },
    /// Rotate a key's secret; prints the new secret. The former secret stays valid for two hours
    Rotate {
        #[command(flatten)]
        key: KeyArgs,
        /// End the former secrets immediately, for example because they have leaked
        #[arg(long, env = "COUNTERPART_END_FORMER", value_parser = switch())]
        end_former: bool,
        #[command(flatten)]
        output: KeyOutput,
    },
    /// Suspend a key
    Deactivate {
        #[command(flatten)]
        key: KeyArgs,
    },
    /// End a key's suspension
    Activate {
        #[command(flatten)]
        key: KeyArgs,
    },
    /// Delete a key immediately and permanently
    Delete {
        #[command(flatten)]
        key: KeyArgs,
    },
}

#[derive(Args, Debug)]
pub struct KeyArgs {
    #[command(flatten)]
    store: StoreArg,
    /// The key's id, as `key list` shows it
    #[arg(long, env = "COUNTERPART_ID", value_name = "KEY")]
    id: String,
}

#[derive(Args, Debug)]
pub struct KeyOutput {
    /// Print the key with its secret as one JSON object
    #[arg(long, env = "COUNTERPART_JSON", value_parser = switch())]
    json: bool,
}

impl KeyCommand {
    pub async fn run(self, config: &Config) -> CliResult {
        let (db, clocks_and_ids) = open_migrated(config).await?;
        self.execute(&service(db.clone(), clocks_and_ids).bounded_by(config.bounds())).await?;
        Ok(db.close().await?)
    }

    async fn execute(self, service: &Service) -> CliResult {
        let now = service.clocks_and_ids().now();
        match self {
            Self::Create { store, name, scopes, user, output } => {
                let new = NewKey { name, scopes: scopes.into_iter().collect(), owner: user };
                let (key, secret) = service.create_key(&Editor::command_line(store.store.into()), new).await?;
                output.print(&key, &secret, now)
            }
            Self::List { store } => {
                for key in service.keys(&store.store.into()).await? {
                    let mut line = shown(&key, now);
                    line["masked"] = key.masked().into();
                    line["userId"] = json!(key.owner);
                    line["lastUsedAt"] = json!(key.last_used_at);
                    print(&line.to_string())?;
                }
                Ok(())
            }
            Self::Edit { key, name, scopes } => {
                let scopes = scopes.map(ScopeSet::from_iter);
                service.edit_key(&key.editor(), &key.id(), name, scopes).await?;
                Ok(())
            }
            Self::Rotate { key, end_former, output } => {
                let (key, secret) = service.rotate_key(&key.editor(), &key.id(), FormerSecrets::of(end_former)).await?;
                output.print(&key, &secret, now)
            }
            Self::Deactivate { key } => {
                service.set_key_active(&key.editor(), &key.id(), false).await?;
                Ok(())
            }
            Self::Activate { key } => {
                service.set_key_active(&key.editor(), &key.id(), true).await?;
                Ok(())
            }
            Self::Delete { key } => Ok(service.delete_key(&key.editor(), &key.id()).await?),
        }
    }
}

/// Parses one scope of a comma-separated list, which may have spaces after its commas.
fn scope(name: &str) -> Result<Scope, ScopeError> {
    name.trim().parse()
}

/// Parses a UUID in upper or lower case, as in requests to the API.
fn user_id(text: &str) -> Result<UserId, String> {
    ScalarParam::parse(text)
}

impl KeyArgs {
    fn editor(&self) -> Editor {
        Editor::command_line(self.store.store.as_str().into())
    }

    fn id(&self) -> KeyId {
        KeyId::from(self.id.as_str())
    }
}

impl KeyOutput {
    fn print(&self, key: &ApiKey, secret: &Secret, now: Timestamp) -> CliResult {
        if !self.json {
            return print(secret.reveal());
        }
        let mut line = shown(key, now);
        line["secret"] = secret.reveal().into();
        print(&line.to_string())
    }
}

fn shown(key: &ApiKey, now: Timestamp) -> Value {
    let scopes: Vec<&str> = key.scopes.iter().map(Scope::name).collect();
    json!({
        "id": key.id,
        "name": key.name,
        "scopes": scopes,
        "status": key.status(now),
        "createdAt": key.created_at,
        "expiresAt": key.expires_at,
    })
}

//! `counterpart key`: API keys.

use clap::{ArgGroup, Args, Subcommand};
use serde_json::{Value, json};

use super::{Outcome, print};
use crate::{
    app::open_migrated,
    config::Config,
    domain::{
        clock::World,
        ids::{KeyId, StoreId, UserId},
        keys::{ApiKey, PREFIX, Secret},
        scopes::{Scope, ScopeError, ScopeSet},
        time::Timestamp,
    },
    http::params::Scalar,
    service::keys,
    store::Db,
};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a key; prints its secret, which is not shown again
    Create {
        #[command(flatten)]
        store: Store,
        /// What the key is for
        #[arg(long, env = "COUNTERPART_NAME")]
        name: String,
        /// What it may do, separated by commas; a write scope grants its read scope
        #[arg(long, env = "COUNTERPART_SCOPES", value_delimiter = ',', value_parser = scope, required = true, value_name = "SCOPE,…")]
        scopes: Vec<Scope>,
        /// The userId of the user in whose name it acts [default: the store's oldest owner]
        #[arg(long, env = "COUNTERPART_USER", value_name = "USERID", value_parser = user_id)]
        user: Option<UserId>,
        #[command(flatten)]
        output: Output,
    },
    /// List a store's keys, one JSON object a line
    List {
        #[command(flatten)]
        store: Store,
    },
    /// Change a key's name or scopes; the secret stays
    #[command(group = ArgGroup::new("changes").args(["name", "scopes"]).required(true).multiple(true))]
    Edit {
        #[command(flatten)]
        key: Key,
        /// A new name
        #[arg(long, env = "COUNTERPART_NAME")]
        name: Option<String>,
        /// All its scopes from now on, separated by commas
        #[arg(long, env = "COUNTERPART_SCOPES", value_delimiter = ',', value_parser = scope, value_name = "SCOPE,…")]
        scopes: Option<Vec<Scope>>,
    },
    /// Give a key a new secret, printed like that of `create`; the former one stays valid for two hours
    Rotate {
        #[command(flatten)]
        key: Key,
        #[command(flatten)]
        output: Output,
    },
    /// Suspend a key
    Deactivate {
        #[command(flatten)]
        key: Key,
    },
    /// Lift a key's suspension
    Activate {
        #[command(flatten)]
        key: Key,
    },
    /// Remove a key at once and for good
    Delete {
        #[command(flatten)]
        key: Key,
    },
}

#[derive(Args, Debug)]
pub struct Store {
    /// The store that the key belongs to
    #[arg(long, env = "COUNTERPART_STORE", value_name = "ID")]
    store: String,
}

#[derive(Args, Debug)]
pub struct Key {
    #[command(flatten)]
    store: Store,
    /// The key's id, as `key list` shows it
    #[arg(long, env = "COUNTERPART_ID", value_name = "KEY")]
    id: String,
}

#[derive(Args, Debug)]
pub struct Output {
    /// Print the key with its secret as one JSON object
    #[arg(long, env = "COUNTERPART_JSON")]
    json: bool,
}

impl Command {
    pub async fn run(self, config: &Config) -> Outcome {
        let db = open_migrated(config, None).await?;
        self.execute(&db, &World::real()).await?;
        Ok(db.close().await?)
    }

    async fn execute(self, db: &Db, world: &World) -> Outcome {
        match self {
            Self::Create { store, name, scopes, user, output } => {
                let (key, secret) = keys::create(db, world, &StoreId::from(store.store), name, scopes.into_iter().collect(), user).await?;
                output.print(&key, &secret, world.now())
            }
            Self::List { store } => {
                for key in keys::list(db, &StoreId::from(store.store)).await? {
                    let mut line = shown(&key, world.now());
                    line["masked"] = format!("{PREFIX}••••{}", key.last_four).into();
                    line["userId"] = json!(key.owner);
                    print(&line.to_string())?;
                }
                Ok(())
            }
            Self::Edit { key, name, scopes } => {
                let scopes = scopes.map(ScopeSet::from_iter);
                keys::edit(db, world, &key.store(), &key.id(), name, scopes).await?;
                Ok(())
            }
            Self::Rotate { key, output } => {
                let (key, secret) = keys::rotate(db, world, &key.store(), &key.id()).await?;
                output.print(&key, &secret, world.now())
            }
            Self::Deactivate { key } => {
                keys::set_active(db, world, &key.store(), &key.id(), false).await?;
                Ok(())
            }
            Self::Activate { key } => {
                keys::set_active(db, world, &key.store(), &key.id(), true).await?;
                Ok(())
            }
            Self::Delete { key } => Ok(keys::delete(db, &key.store(), &key.id()).await?),
        }
    }
}

/// One of a list that may be written with spaces behind its commas.
fn scope(name: &str) -> Result<Scope, ScopeError> {
    name.trim().parse()
}

/// As a request spells it: a UUID in any case.
fn user_id(text: &str) -> Result<UserId, String> {
    Scalar::parse(text)
}

impl Key {
    fn store(&self) -> StoreId {
        StoreId::from(self.store.store.as_str())
    }

    fn id(&self) -> KeyId {
        KeyId::from(self.id.as_str())
    }
}

impl Output {
    fn print(&self, key: &ApiKey, secret: &Secret, now: Timestamp) -> Outcome {
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

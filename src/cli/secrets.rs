//! `counterpart secrets`: lists and rotates the keys that encrypt the stored secrets.

use clap::Subcommand;
use serde_json::json;

use super::{CliResult, Failed, print};
use crate::{app::open_migrated, config::Config, store::settings::encryption_keys::Rotation};

#[derive(Debug, Subcommand)]
pub enum SecretsCommand {
    /// Print how many secrets are encrypted with each key, one JSON object per line
    List,
    /// Encrypt every secret that is encrypted with another key, or with none, with the first key. If the program manages the key file
    /// itself, it first adds a new key at the beginning of the file
    Rotate,
}

impl SecretsCommand {
    pub async fn run(self, config: &Config) -> CliResult {
        match self {
            Self::List => list(config).await,
            Self::Rotate => rotate(config).await,
        }
    }
}

async fn list(config: &Config) -> CliResult {
    let (db, _) = open_migrated(config).await?;
    for (key_id, secrets) in db.secrets_by_key().await? {
        let readable = key_id.as_deref().is_none_or(|id| db.secret_keys().knows(id));
        print(&json!({ "keyId": key_id, "secrets": secrets, "readable": readable }).to_string())?;
    }
    Ok(db.close().await?)
}

async fn rotate(config: &Config) -> CliResult {
    let (db, _) = open_migrated(config).await?;
    // The key file stays locked until the end of this function. Otherwise a concurrent rotation could remove keys with which this rotation
    // encrypts.
    let rotation = config.own_key_file().map(|file| Rotation::begin(&file)).transpose()?;
    if let Some(rotation) = &rotation {
        let used = db.secrets_by_key().await?;
        rotation.add_key(|id| used.contains_key(&Some(id.to_owned())))?;
    }
    let resealed = db.reencrypt_all().await?;
    let current = db.secret_keys().current_id();
    db.close().await?;
    let Some(key) = current else {
        return Err(Failed(
            "there is no key; set COUNTERPART_SECRET_KEY_FILE to a file with a key, as `openssl rand -base64 32` prints one".to_owned(),
        ));
    };
    print(&format!("encrypted {} secrets with the key {key}", resealed.sealed))?;
    match resealed.unreadable {
        0 => Ok(()),
        count => Err(Failed(format!(
            "{count} secrets stay as they are: no configured key decrypts them; `counterpart secrets list` shows their keys"
        ))),
    }
}

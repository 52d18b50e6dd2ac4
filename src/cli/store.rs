//! `counterpart store`: creates, changes and lists stores. A store is a shop with its own records and users.

use clap::{ArgGroup, Args, Subcommand};

use super::{CliResult, print};
use crate::{
    app::{open_migrated, service},
    config::Config,
    domain::{
        ids::StoreId,
        settings_access::{CredentialKind, Editor, link_url},
        token_grants::GrantSet,
        users_teams_labels::RoleKind,
    },
    service::{
        seats::NewUser,
        store_creation_and_settings::{StoreSettings, create_store, edit_store},
    },
};

#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Create a store; prints its id and, with an owner, the owner's userId and a link to the settings page
    Create {
        /// The id of the new store
        #[arg(long, env = "COUNTERPART_ID")]
        id: String,
        /// The name of the new store
        #[arg(long, env = "COUNTERPART_NAME")]
        name: String,
        #[command(flatten)]
        settings: Flags,
        #[command(flatten)]
        owner: Owner,
    },
    /// Change a store's settings; a setting without an option stays unchanged
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

/// The first user of a new store.
#[derive(Args, Debug)]
pub struct Owner {
    /// The name of the store's owner, who is created with the store
    #[arg(long, env = "COUNTERPART_OWNER_NAME", value_name = "NAME", requires = "owner_email")]
    owner_name: Option<String>,
    /// The owner's e-mail address
    #[arg(long, env = "COUNTERPART_OWNER_EMAIL", value_name = "ADDRESS", requires = "owner_name")]
    owner_email: Option<String>,
    /// The public base URL of the server, for the owner's link
    #[arg(long, env = "COUNTERPART_PUBLIC_URL", default_value = "http://127.0.0.1:8080", value_name = "URL")]
    public_url: String,
}

impl Owner {
    fn user(&self) -> Option<NewUser> {
        let (name, email) = (self.owner_name.clone()?, self.owner_email.clone()?);
        Some(NewUser { name, email, role: RoleKind::Owner })
    }
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
    fn settings(self, name: Option<String>) -> StoreSettings {
        StoreSettings { name, currency: self.currency, reopen_window_hours: self.reopen_window_hours }
    }
}

impl StoreCommand {
    pub async fn run(self, config: &Config) -> CliResult {
        let (db, clocks_and_ids) = open_migrated(config).await?;
        match self {
            Self::Create { id, name, settings, owner } => {
                let user = owner.user();
                // The owner is checked first, so that an invalid owner does not leave a store without an owner.
                user.as_ref().map_or(Ok(()), NewUser::check)?;
                let store = create_store(&db, &clocks_and_ids, StoreId::from(id), settings.settings(Some(name))).await?;
                print(store.id.as_str())?;
                if let Some(user) = user {
                    let (service, editor) = (service(db.clone(), clocks_and_ids), Editor::command_line(store.id));
                    let (user_id, _) = service.add_user(&editor, user).await?;
                    print(user_id.as_str())?;
                    let (link, _) = service.issue(&editor, &user_id, CredentialKind::Link, GrantSet::EVERYTHING).await?;
                    print(&link_url(&owner.public_url, &link))?;
                }
            }
            Self::Edit { id, name, settings } => {
                edit_store(&db, &StoreId::from(id), settings.settings(name)).await?;
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

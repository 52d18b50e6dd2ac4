//! `counterpart user`: management of a store's users.

use clap::Subcommand;
use serde_json::json;

use super::{CliResult, StoreArg, print};
use crate::{
    app::{open_migrated, service},
    config::Config,
    domain::{ids::StoreId, settings_access::Editor, users_teams_labels::RoleKind},
    service::seats::NewUser,
};

#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Create a user; prints the userId, for `settings link --user`
    Create {
        #[command(flatten)]
        store: StoreArg,
        /// The user's name
        #[arg(long, env = "COUNTERPART_NAME")]
        name: String,
        /// The user's e-mail address
        #[arg(long, env = "COUNTERPART_EMAIL", value_name = "ADDRESS")]
        email: String,
        /// The user's role: an owner may change everything, an admin all settings but other owners, an agent no settings
        #[arg(long, env = "COUNTERPART_ROLE", value_name = "owner|admin|agent", default_value = "agent", value_parser = role)]
        role: RoleKind,
    },
    /// List a store's users, one JSON object per line, oldest first
    List {
        #[command(flatten)]
        store: StoreArg,
    },
}

fn role(text: &str) -> Result<RoleKind, String> {
    RoleKind::of(text).ok_or_else(|| format!("must be one of {}", RoleKind::ALL.map(RoleKind::name).join(", ")))
}

impl UserCommand {
    pub async fn run(self, config: &Config) -> CliResult {
        let (db, clocks_and_ids) = open_migrated(config).await?;
        let service = service(db.clone(), clocks_and_ids);
        match self {
            Self::Create { store, name, email, role } => {
                let editor = Editor::command_line(StoreId::from(store.store));
                let (user_id, _) = service.add_user(&editor, NewUser { name, email, role }).await?;
                print(user_id.as_str())?;
            }
            Self::List { store } => {
                for (user, role) in service.users_of_store(&StoreId::from(store.store)).await? {
                    let line = json!({
                        "userId": user.user_id,
                        "name": user.name,
                        "email": user.email,
                        "role": role.map(|role| role.name),
                        "createdAt": user.created_at,
                    });
                    print(&line.to_string())?;
                }
            }
        }
        Ok(db.close().await?)
    }
}

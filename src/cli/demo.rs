//! `counterpart demo`: serves the API on an embedded SQLite database with the data of a small shop. Without `--keep`, the database is
//! deleted at the end.

use std::{
    io::Cursor,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::{CliResult, demo_data, print, serve::Listen};
use crate::{
    app::{App, ClientSettings, ServedDatabase, ToolSettings, open_served, service},
    assistant_tools::{self, ToolPermissions},
    config::Config,
    delivery::{channel_connector::Connectors, channel_simulator::Simulator},
    domain::{
        api_key_scopes::Scope,
        api_keys::{ApiKey, Secret},
        clock::ClocksAndIds,
        events::Actor,
        ids::StoreId,
        settings_access::{CredentialKind, Editor, link_url},
        ssrf_policy::Targets,
        token_grants::GrantSet,
    },
    http::{machinery::routing::PREFIX, openapi::examples::STORE},
    revision,
    service::{
        WriteContext,
        import::{self, Options, RereadableInput},
        keys::NewKey,
        store_creation_and_settings::{StoreSettings, create_store},
    },
    store::Db,
    telemetry::metrics::Metrics,
};

/// The name of the demo's API key.
const KEY_NAME: &str = "demo";

/// The characters that are percent-encoded in the path of a URL: control characters, `%`, and the characters that would end the path.
const NOT_IN_PATHS: &AsciiSet = &CONTROLS.add(b'%').add(b'?').add(b'#');

#[derive(Args, Debug)]
pub struct Demo {
    #[command(flatten)]
    listen: Listen,

    /// Store the data in this SQLite file, and continue with it the next time [default: a temporary file, deleted at the end]
    #[arg(long, env = "COUNTERPART_KEEP", value_name = "FILE")]
    keep: Option<PathBuf>,
}

impl Demo {
    pub async fn run(self, config: &Config) -> CliResult {
        let folder = tempfile::tempdir()?;
        let file = self.keep.clone().unwrap_or_else(|| folder.path().join("demo.db"));
        let path = file.to_str().ok_or_else(|| super::Failed("the path of `--keep` must be UTF-8".to_owned()))?;
        let url = format!("sqlite://{}", utf8_percent_encode(path, NOT_IN_PATHS));
        let config = Config { database_url: url, secret_key_file: None, secret_key: None, index_dir: None, ..config.clone() };
        let metrics = Metrics::default();
        let ServedDatabase { db, clocks_and_ids, lock: _ } = open_served(&config, &metrics, false).await?;
        let (key, link) = fill(&db, &clocks_and_ids).await?;
        let callers = ClientSettings { bounds: config.bounds(), ..ClientSettings::default() };
        let connectors = Connectors::every(Arc::new(Simulator));
        let app = App::new(db, clocks_and_ids, metrics, callers, connectors, Targets::PublicAndLoopback, config.index_folder()).await?;
        let app = app.with_tools(ToolSettings { permits: ToolPermissions::default(), hosts: self.listen.hosts() });
        self.listen.serve(&app, |addresses| print(&welcome(&addresses.url, &key, &link, self.keep.as_deref()))).await
    }
}

/// Creates the store and its records unless they exist, replaces the former demo key by a new one with all scopes, and creates a link to
/// the settings page. Returns the secret of the key and the secret of the link.
async fn fill(db: &Db, clocks_and_ids: &ClocksAndIds) -> Result<(Secret, Secret), super::Failed> {
    let store = StoreId::from(STORE);
    let stores = db.stores().await?;
    if stores.is_empty() {
        let settings = StoreSettings { name: Some("Demo shop".to_owned()), ..StoreSettings::default() };
        create_store(db, clocks_and_ids, store.clone(), settings).await?;
    } else if stores.iter().all(|other| other.id != store) {
        let reason = format!("the file holds other stores, but no store `{store}`; `--keep` needs a file of an earlier demo, or a new one");
        return Err(super::Failed(reason));
    }
    // The import creates the owner. If there is no owner, the store is new, or an earlier start was killed before the import. In both cases
    // the records are imported now.
    let is_new = db.users(&store, Some(&demo_data::owner())).await?.is_empty();
    if is_new {
        let spool = RereadableInput::copy(Cursor::new(demo_data::lines(clocks_and_ids.now()).collect::<Vec<_>>().join("\n")))?;
        import::run(db, clocks_and_ids, &store, spool, Options::default()).await?;
    }
    let (service, editor) = (service(db.clone(), clocks_and_ids.clone()), Editor::command_line(store.clone()));
    // Recognizes the API key of an earlier demo. A key that a user created under the same name is kept if it has an owner or lacks a scope.
    let is_former =
        |key: &&ApiKey| key.name == KEY_NAME && key.owner.is_none() && Scope::ALL.iter().all(|scope| key.scopes.contains(*scope));
    for key in service.keys(&store).await?.iter().filter(is_former) {
        service.delete_key(&editor, &key.id).await?;
    }
    let new = NewKey { name: KEY_NAME.to_owned(), scopes: Scope::ALL.iter().copied().collect(), owner: None };
    let (made, key) = service.create_key(&editor, new).await?;
    if is_new {
        let by = || WriteContext::alone(&store, Actor::ApiKey(made.id.clone()));
        for send in demo_data::drafts() {
            service.make_draft(&by(), &made.id, &made.name, send).await?;
        }
    }
    let (link, _) = service.issue(&editor, &demo_data::owner(), CredentialKind::Link, GrantSet::EVERYTHING).await?;
    Ok((key, link))
}

fn welcome(base: &str, key: &Secret, link: &Secret, kept: Option<&Path>) -> String {
    let key = key.reveal();
    let end = kept.map_or("is deleted when the server stops".to_owned(), |file| format!("is kept in `{}`", file.display()));
    format!(
        "A demo store is served in revision {revision}; it {end}.\n\n\
         Base URL  {base}{PREFIX}\n\
         API key   {key}\n\
         Docs      {base}/docs\n\
         Tools     {base}{tools} (for assistants: Model Context Protocol)\n\
         Settings  {settings}\n          (opens once, within 15 minutes)\n\n\
         curl -H 'x-api-key: {key}' '{base}{PREFIX}/conversations?contactId={contact}&pageSize=2'",
        revision = revision::NAME,
        tools = assistant_tools::PATH,
        settings = link_url(base, link),
        contact = demo_data::FIRST_CONTACT,
    )
}

#[cfg(test)]
mod openapi_example_tests;

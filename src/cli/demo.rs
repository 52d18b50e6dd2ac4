//! `counterpart demo`: serves the API on a temporary embedded database with a small store, which is deleted at the end.

use std::{io::Cursor, sync::Arc};

use clap::Args;

use super::{Outcome, demo_data, print, serve::Listen, settings};
use crate::{
    app::{App, Limits, service},
    delivery::{connector::Connectors, simulator::Simulator},
    domain::{
        clock::World,
        ids::StoreId,
        keys::Secret,
        scopes::Scope,
        settings::{Editor, GrantKind},
        targets::Targets,
    },
    http::{document::PREFIX, examples::STORE},
    revision,
    service::{
        import::{self, Options, Spool},
        keys::NewKey,
        stores,
    },
    store::{Db, settings::secret_keys::SecretKeys},
    telemetry::Metrics,
};

#[derive(Args, Debug)]
pub struct Demo {
    #[command(flatten)]
    listen: Listen,
}

impl Demo {
    pub async fn run(self) -> Outcome {
        let folder = tempfile::tempdir()?;
        let metrics = Metrics::default();
        let url = format!("sqlite://{}", folder.path().join("demo.db").display());
        let db = Db::open(&url, 4, Some(metrics.on_statement())).await?;
        db.migrate_up().await?;
        let db = db.with_secret_keys(SecretKeys::fresh()?);
        let world = World::real();
        let (key, link) = fill(&db, &world).await?;
        let (connectors, index) = (Connectors::every(Arc::new(Simulator)), folder.path().join("demo.index"));
        let app = App::new(db, world, metrics, Limits::default(), connectors, Targets::PublicAndLoopback, index).await?;
        self.listen.serve(&app, |base| print(&welcome(base, &key, &link))).await
    }
}

/// Creates the store, a key with all scopes, and a link to the settings.
async fn fill(db: &Db, world: &World) -> Result<(Secret, Secret), super::Failed> {
    let store = StoreId::from(STORE);
    let settings = stores::Settings { name: Some("Demo shop".to_owned()), ..stores::Settings::default() };
    stores::create(db, world, store.clone(), settings).await?;
    let spool = Spool::copy(Cursor::new(demo_data::lines(world.now()).collect::<Vec<_>>().join("\n")))?;
    import::run(db, world, &store, spool, Options::default()).await?;
    let new = NewKey { name: "demo".to_owned(), scopes: Scope::ALL.iter().copied().collect(), owner: None };
    let (service, editor) = (service(db.clone(), world.clone()), Editor::command_line(store));
    let (_, key) = service.create_key(&editor, new).await?;
    let (link, _) = service.grant(&editor, &demo_data::owner(), GrantKind::Link).await?;
    Ok((key, link))
}

fn welcome(base: &str, key: &Secret, link: &Secret) -> String {
    let key = key.reveal();
    format!(
        "A demo store is served in revision {revision}; it is gone when this stops.\n\n\
         Base URL  {base}{PREFIX}\n\
         API key   {key}\n\
         Docs      {base}/docs\n\
         Settings  {settings}\n          (opens once, within 15 minutes)\n\n\
         curl -H 'x-api-key: {key}' '{base}{PREFIX}/conversations?contactId={contact}&pageSize=2'",
        revision = revision::NAME,
        settings = settings::link(base, link),
        contact = demo_data::FIRST_CONTACT,
    )
}

#[cfg(test)]
mod tests;

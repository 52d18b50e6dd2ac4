//! `counterpart demo`: the API on a fresh embedded database with a small store in it, gone when it stops.

use std::{io::Cursor, sync::Arc};

use clap::Args;

use super::{Outcome, demo_data, print, serve::Listen};
use crate::{
    app::App,
    delivery::{connector::Connectors, guard::Targets, simulator::Simulator},
    domain::{clock::World, ids::StoreId, scopes::Scope},
    http::document::PREFIX,
    revision,
    service::{
        import::{self, Options, Spool},
        keys, stores,
    },
    store::Db,
    telemetry::Metrics,
};

const STORE: &str = "demo";

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
        let world = World::real();
        let key = fill(&db, &world).await?;
        let (connectors, index) = (Connectors::every(Arc::new(Simulator)), folder.path().join("demo.index"));
        let app = App::new(db, world, metrics, None, connectors, Targets::Public, index).await?;
        self.listen.serve(&app, |base| print(&welcome(base, &key))).await
    }
}

/// Makes the store and a key that may read everything.
async fn fill(db: &Db, world: &World) -> Result<String, super::Failed> {
    let store = StoreId::from(STORE);
    let settings = stores::Settings { name: Some("Demo shop".to_owned()), ..stores::Settings::default() };
    stores::create(db, world, store.clone(), settings).await?;
    let spool = Spool::copy(Cursor::new(demo_data::lines(world.now()).collect::<Vec<_>>().join("\n")))?;
    import::run(db, world, &store, spool, Options::default()).await?;
    let (_, secret) = keys::create(db, world, &store, "demo".to_owned(), Scope::ALL.iter().copied().collect(), None).await?;
    Ok(secret.reveal().to_owned())
}

fn welcome(base: &str, key: &str) -> String {
    format!(
        "A demo store is served in revision {revision}; it is gone when this stops.\n\n\
         Base URL  {base}{PREFIX}\n\
         API key   {key}\n\
         Docs      {base}/docs\n\n\
         curl -H 'x-api-key: {key}' '{base}{PREFIX}/conversations?contactId={contact}&pageSize=2'",
        revision = revision::NAME,
        contact = demo_data::FIRST_CONTACT,
    )
}

//! `counterpart events`: prints the recorded events of a store, one payload per line.

use clap::Args;

use super::{CliResult, print};
use crate::{
    app::{open_migrated, service},
    config::Config,
    domain::ids::StoreId,
};

/// The number of events per query.
const PAGE: i64 = 500;

#[derive(Args, Debug)]
pub struct EventsArgs {
    /// The id of the store
    #[arg(long, env = "COUNTERPART_STORE", value_name = "ID")]
    store: String,

    /// Only events after this `sequence`
    #[arg(long, env = "COUNTERPART_AFTER", default_value_t = 0, value_name = "SEQ", value_parser = clap::value_parser!(i64).range(0..))]
    after: i64,
}

impl EventsArgs {
    pub async fn run(self, config: &Config) -> CliResult {
        let (db, clocks_and_ids) = open_migrated(config).await?;
        let service = service(db.clone(), clocks_and_ids);
        let store = StoreId::from(self.store);
        let mut after = self.after;
        loop {
            let page = service.events_after(&store, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.sequence;
            print(&page.into_iter().map(|event| event.text).collect::<Vec<_>>().join("\n"))?;
        }
        Ok(db.close().await?)
    }
}

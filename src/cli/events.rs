//! `counterpart events`: what happened in a store, one payload a line.

use clap::Args;

use super::{Failed, Outcome, print};
use crate::{
    app::open_migrated,
    config::Config,
    domain::{clock::World, events::numbered, ids::StoreId},
    service::events,
};

#[derive(Args, Debug)]
pub struct Events {
    /// The store
    #[arg(long, env = "COUNTERPART_STORE", value_name = "ID")]
    store: String,

    /// Only events behind this `sequence`
    #[arg(long, env = "COUNTERPART_AFTER", default_value_t = 0, value_name = "SEQ", value_parser = clap::value_parser!(i64).range(0..))]
    after: i64,
}

impl Events {
    pub async fn run(self, config: &Config) -> Outcome {
        let db = open_migrated(config, None).await?;
        let store = StoreId::from(self.store);
        let mut after = self.after;
        loop {
            let page = events::after(&db, &World::real(), &store, after).await?;
            let Some(last) = page.last() else { break };
            after = last.sequence;
            let damaged = || Failed("a recorded event is damaged".to_owned());
            let lines: Option<Vec<String>> =
                page.iter().map(|event| String::from_utf8(numbered(event.sequence, &event.body)?).ok()).collect();
            print(&lines.ok_or_else(damaged)?.join("\n"))?;
        }
        Ok(db.close().await?)
    }
}

//! `counterpart reindex`: rebuilds the search index from the database.

use std::time::Instant;

use clap::Args;

use super::{CliResult, Failed, print, progress};
use crate::{
    app::{database_id, open_migrated, service},
    config::Config,
    search::SearchService,
};

#[derive(Args, Debug)]
pub struct Reindex {}

impl Reindex {
    pub async fn run(self, config: &Config) -> CliResult {
        let (db, clocks_and_ids) = open_migrated(config).await?;
        let database = database_id(&service(db.clone(), clocks_and_ids)).await?;
        let (bar, progress) = progress::bar();
        let began = Instant::now();
        let built = SearchService::reindex(&db, &config.index_folder(), &database, progress).await;
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        db.close().await?;
        let records = built.map_err(|error| Failed(format!("{error}\na running server locks and builds its own index: stop it first")))?;
        print(&format!("indexed {records} records in {:.1} s", began.elapsed().as_secs_f64()))
    }
}

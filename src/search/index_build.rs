//! Index build: creates the search index from all records in the database. Called by `search_service`, also for `counterpart reindex`.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
};

use tantivy::TantivyError;

use super::{Error, Result, index::Index, index_directory::Folder, overlay::TEXTS_PER_STATEMENT};
use crate::{
    domain::{
        ids::StoreId,
        search::{Searchable, SearchableKind},
    },
    store::{Db, change_log::reader::LogPosition},
};

/// Progress callback. Its arguments are the number of indexed records and the number of all records.
pub type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// Builds the index of all records in one commit; an index without that commit is not valid. Returns the index, its position in the change
/// log, and the number of records.
pub async fn build(db: &Db, folder: &Folder, database: &str, progress: Option<Progress>) -> Result<(Index, LogPosition, u64)> {
    db.assign_local_transaction_ids().await?;
    // `log_position` is the present end of the change log. After the build, later changes are applied from the log.
    let log_position = db.log_position().await?;
    let total = db.count_searchables().await?;
    let (path, name) = (folder.path.clone(), database.to_owned());
    let index = Arc::new(Mutex::new(blocking(move || Ok(Index::create(&path, &name)?)).await?));
    let mut done = 0;
    for store in db.stores().await? {
        for noun in [SearchableKind::Message, SearchableKind::Contact] {
            add_all(db, &index, &store.id, noun, &mut |added| {
                done += added;
                if let Some(progress) = &progress {
                    progress(done, total.max(done));
                }
            })
            .await?;
        }
    }
    let commit = log_position.clone();
    let index = blocking(move || {
        let index = Arc::into_inner(index).ok_or_else(|| Error::Failed("the index is in use while it is built".to_owned()))?;
        let mut index = index.into_inner().unwrap_or_else(PoisonError::into_inner);
        index.commit(&commit)?;
        Ok(index.settle()?)
    })
    .await?;
    Ok((index, log_position, done))
}

async fn add_all(db: &Db, index: &Arc<Mutex<Index>>, store: &StoreId, noun: SearchableKind, added: &mut impl FnMut(u64)) -> Result<()> {
    let mut after = String::new();
    loop {
        let records = db.searchables_after(store, noun, &after, TEXTS_PER_STATEMENT).await?;
        let Some(last) = records.last() else { return Ok(()) };
        after.clone_from(&last.id);
        added(records.len() as u64);
        let index = index.clone();
        blocking(move || add(&index, &records)).await?;
    }
}

fn add(index: &Mutex<Index>, records: &[Searchable]) -> Result<()> {
    let index = index.lock().unwrap_or_else(PoisonError::into_inner);
    records.iter().try_for_each(|record| Ok(index.add(record)?))
}

/// Turns a panic into an error: Tantivy, the index library, may panic on damage that appears after the index was opened.
pub(super) fn unpanicked<T>(read: impl FnOnce() -> tantivy::Result<T>) -> tantivy::Result<T> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(TantivyError::InternalError("reading it panicked".to_owned())))
}

/// Runs blocking code (disk access or a long computation) on a thread where it blocks no async task.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(Error::Failed(error.to_string())))
}

//! NDJSON import of a store, all or nothing. Called by `cli` and the demo.
//!
//! All lines are validated before the transaction begins, so that the transaction is short: on SQLite it keeps every other writer out. The
//! field definitions are validated first, and then all other records, whose values must fit the definitions. So the order of lines does
//! not matter. Up to [`MAX_FAULTS`] faults are reported.
//!
//! Then the transaction begins. While one task writes to the database, a separate thread reads the input again, and sends batches of
//! records to the task through a bounded queue. Before the batches, up to two passes over the input prepare the writes. One collects the
//! rows that the database must lock beforehand. The other collects the ids of records that may replace stored records, which must first
//! release their unique values, such as e-mail addresses. Only the queue, hashes of ids, the definitions, and the accounts of recent
//! conversations are kept in memory.
//!
//! - `rereadable_input`: the input (`spool`), whose lines can be read several times.
//! - `import_errors`: why an input is refused.
//! - `parse`: the parser of a line.
//! - `message_payload_validation`: validation of the senders and payloads of messages.
//! - `record_validation`: validation of a record's values.
//! - `field_definitions`: validation of field definitions, and of field values.
//! - `reader_thread`: the passes over the input, on a thread of their own.
//! - `schema`: the JSON Schema of a line, and an example.

mod field_definitions;
mod import_errors;
mod message_payload_validation;
mod parse;
mod reader_thread;
mod record_validation;
mod rereadable_input;
mod schema;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::mpsc;

use crate::{
    domain::{clock::ClocksAndIds, custom_fields::Field, ids::StoreId, ndjson_records::RecordKind},
    store::{
        Db,
        import::{At, Definition, Import, ImportFailure, ImportFault, MAX_FAULTS},
    },
};

use field_definitions::Definitions;
pub use import_errors::{ImportError, LineFault};
use parse::LineHeader;
use reader_thread::{ExistingRecords, ImportReader, ImportStep};
pub use rereadable_input::{MAX_LINE_BYTES, RereadableInput};
pub use schema::{EXAMPLE, schema};

/// The capacity of the queue between the reading thread and the task that writes to the database, in steps (see [`ImportStep`]).
const QUEUE: usize = 2;

/// A callback that receives the number of bytes that were processed, and the total number of bytes. Both count each byte of the input once
/// for each pass over the input that the progress counts (see `PASSES` in `reader_thread`).
pub type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// The options of an import.
#[derive(Clone, Default)]
pub struct Options {
    /// Whether the import is carried out completely and then rolled back.
    pub dry_run: bool,
    pub progress: Option<Progress>,
}

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of imported records of each kind. Kinds without records are left out.
    pub counts: Vec<(RecordKind, u64)>,
    /// How long the import excluded other writers. `None` if the database permits several writers at a time.
    pub exclusive: Option<Duration>,
}

impl Summary {
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }
}

/// Imports the records of an input into a store. On any failure, and on a crash, the store is unchanged.
pub async fn run(
    db: &Db,
    clocks_and_ids: &ClocksAndIds,
    store: &StoreId,
    spool: RereadableInput,
    options: Options,
) -> Result<Summary, ImportError> {
    if !db.store_exists(store).await? {
        return Err(ImportError::NoStore(store.clone()));
    }
    let ticket_fields = db.ticket_fields(store).await?.into_iter().map(|field| definition(field.base)).collect();
    let contact_fields = db.contact_fields(store).await?.into_iter().map(definition).collect();
    let reader = ImportReader::new(Definitions::stored(ticket_fields, contact_fields), options.progress.clone());
    let (spool, read) = reading(spool, move |spool| reader.validate(spool)).await?;
    let fields = read?;

    let mut import = db.begin_import(store, clocks_and_ids.now()).await?.ok_or_else(|| ImportError::NoStore(store.clone()))?;
    let begun = Instant::now();
    import.expect(spool.bytes()).await?;
    // The definitions may have changed since the validation read them.
    let definitions =
        Definitions::stored(import.definitions(RecordKind::TicketField).await?, import.definitions(RecordKind::ContactField).await?);
    let existing = ExistingRecords {
        kinds: RecordKind::ALL.into_iter().filter(|kind| import.had_records(*kind)).collect(),
        must_lock_rows: import.must_lock_rows(),
    };
    let (sender, mut steps) = mpsc::channel(QUEUE);
    let reader = ImportReader::new(definitions, options.progress.clone());
    let reading = reading(spool, move |spool| reader.send_to(sender, existing).run(spool, fields));
    let written = async {
        let written = write(&mut import, &mut steps).await;
        // Closing the queue stops the reader, if it is still running.
        drop(steps);
        written
    };
    let (written, read) = tokio::join!(written, reading);
    let (spool, read) = read?;

    let outcome = match (written, read) {
        // Checks the import as a whole, but only if no batch and no line of the input has failed. Otherwise that failure is reported.
        (Ok(()), Ok(end)) => match import.missing_account(&end.accounts).await? {
            Some(account) => Err(ImportError::at(
                "ticketField.accountIds",
                format!("there is no account `{account}`, neither in the file nor in the store"),
            )),
            None => match import.finish().await {
                Ok(()) => Ok(end.summary),
                Err(ImportFailure::Faults(faults)) => Err(located(&spool, faults)?),
                Err(ImportFailure::Store(error)) => return Err(error.into()),
            },
        },
        (Err(ImportFailure::Faults(faults)), _) => Err(located(&spool, faults)?),
        (Err(ImportFailure::Store(error)), _) => Err(error.into()),
        (Ok(()), Err(failure)) => Err(failure),
    };
    match outcome {
        Ok(mut summary) => {
            if options.dry_run {
                import.rollback().await?;
            } else {
                import.commit(db).await?;
            }
            summary.exclusive = db.is_one_writer().then(|| begun.elapsed());
            // On PostgreSQL, an import leaves each stored total (a number of tickets or contacts) in several rows, whose values every
            // request for a first page with a total has to add up. Here the rows of each total are replaced by one row with their sum.
            if !options.dry_run
                && let Err(error) = db.compact_totals().await
            {
                tracing::warn!(%error, "partial totals could not be folded; a server will do it later");
            }
            Ok(summary)
        }
        Err(failure) => {
            import.rollback().await?;
            Err(failure)
        }
    }
}

/// Runs `read` on a thread where it may block. Returns its result, and the input for further use.
async fn reading<T: Send + 'static>(
    spool: RereadableInput,
    read: impl FnOnce(&RereadableInput) -> T + Send + 'static,
) -> Result<(RereadableInput, T), ImportError> {
    tokio::task::spawn_blocking(move || {
        let outcome = read(&spool);
        (spool, outcome)
    })
    .await
    .map_err(|_| ImportError::Reader)
}

fn definition(field: Field) -> Definition {
    (field.id, field.display_type, field.data_type, field.max_items)
}

async fn write(import: &mut Import, steps: &mut mpsc::Receiver<ImportStep>) -> Result<(), ImportFailure> {
    while let Some(step) = steps.recv().await {
        match step {
            ImportStep::NoteConversations(conversations) => import.note_conversations(&conversations).await?,
            ImportStep::NoteFormerConversations(kind, ids) => import.note_former_conversations(kind, &ids).await?,
            ImportStep::LockAffectedRows(kinds) => import.lock_affected(|kind| kinds.contains(&kind)).await?,
            ImportStep::ReleaseUniqueValues(kind, ids) => import.release_unique_values(kind, &ids).await?,
            ImportStep::Write(batch) => import.put(*batch).await?,
        }
    }
    Ok(())
}

/// Finds the lines of faults that the database found. Reads the input again, since its records were not kept.
fn located(spool: &RereadableInput, faults: Vec<ImportFault>) -> Result<ImportError, ImportError> {
    let mut located = Vec::with_capacity(faults.len());
    let mut sought = Vec::new();
    for ImportFault { at, property, reason } in faults {
        match at {
            At::Line { number, kind } => located.push(LineFault::new(number, format!("{}.{property}", kind.name()), reason)),
            At::Where { kinds, property: key, value } => sought.push((kinds, key, value, property, reason)),
        }
    }
    let mut lines = spool.lines();
    while let Some((number, text)) = lines.next()?.filter(|_| !sought.is_empty()) {
        let peek = LineHeader::of(number, text?)?;
        sought.retain(|(kinds, key, value, property, reason)| {
            let here = kinds.contains(&peek.kind) && peek.property(key).is_some_and(|found| found == *value);
            if here {
                located.push(LineFault::new(number, format!("{}.{property}", peek.kind.name()), reason.clone()));
            }
            !here
        });
    }
    for (kinds, key, value, property, reason) in sought {
        let holder = kinds.first().map(|kind| format!("{} with {key} `{value}`, already in the store: ", kind.name()));
        located.push(LineFault { line: None, place: format!("{}{property}", holder.unwrap_or_default()), reason });
    }
    located.sort_by_key(|fault| fault.line);
    Ok(ImportError::Faults(located))
}

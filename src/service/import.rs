//! NDJSON import of a store, all or nothing (decisions, section 9). Called by `cli` and the demo.
//!
//! The input is read twice: definitions first, since values are checked against them, then everything else, so the order of
//! lines does not matter. A database that locks the affected rows beforehand needs one more pass before these. A separate
//! thread reads and checks while the database writes, with a bounded queue of batches between them. Memory use is bounded:
//! the queue, a hash of each id, and the accounts of recent conversations.
//! - `spool`: the lines.
//! - `parse`: a line as a record.
//! - `channel`: senders and payloads.
//! - `check`: validation of a record's values.
//! - `definitions`: field definitions, and the validation of field values.
//! - `schema`: the JSON Schema of a line, and an example.

mod channel;
mod check;
mod definitions;
mod parse;
mod reader;
mod schema;
mod spool;

use std::{io, sync::Arc};

use tokio::sync::mpsc;

use crate::{
    domain::{clock::World, ids::StoreId, records::Kind},
    store::{
        self, Db,
        import::{At, Fault, Import, Outcome},
    },
};

use definitions::Definitions;
use parse::Peek;
use reader::{Held, Reader, Step};
pub use schema::{EXAMPLE, schema};
pub use spool::{MAX_LINE_BYTES, Spool};

/// The capacity of the queue between the reading thread and the database, in batches.
const QUEUE: usize = 2;

/// Called with the bytes done, and all bytes.
pub type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// The options of an import.
#[derive(Clone, Default)]
pub struct Options {
    /// Do everything, then roll back.
    pub dry_run: bool,
    pub progress: Option<Progress>,
}

/// The result of an import: the number of records of each kind, without zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub counts: Vec<(Kind, u64)>,
}

impl Summary {
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }
}

/// Why an import failed. Nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// An invalid line; `place` names kind and property, where there is one.
    #[error("line {line}: {place}{sep}{reason}", sep = if place.is_empty() { "" } else { ": " })]
    Line { line: u64, place: String, reason: String },
    /// The records contradict each other.
    #[error("{0}")]
    Records(String),
    #[error("there is no store `{0}`; `counterpart store create --id {0} --name NAME` makes it")]
    NoStore(StoreId),
    #[error("the input cannot be read: {0}")]
    Input(#[from] io::Error),
    #[error("{0}")]
    Store(#[from] store::Error),
    #[error("the reading thread ended early")]
    Reader,
}

impl Failure {
    fn line(line: u64, place: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Line { line, place: place.into(), reason: reason.into() }
    }
}

/// Imports into a store. On any failure, and on a crash, the store is unchanged.
pub async fn run(db: &Db, world: &World, store: &StoreId, spool: Spool, options: Options) -> Result<Summary, Failure> {
    let now = world.now();
    let mut import = db.begin_import(store, now).await?.ok_or_else(|| Failure::NoStore(store.clone()))?;
    import.expect(spool.bytes()).await?;
    let definitions = Definitions::stored(import.definitions(Kind::TicketField).await?, import.definitions(Kind::ContactField).await?);
    let held = Held { kinds: Kind::ALL.into_iter().filter(|kind| import.held(*kind)).collect(), holds: import.holds() };

    let (sender, mut steps) = mpsc::channel(QUEUE);
    let progress = options.progress.clone();
    let reading = tokio::task::spawn_blocking(move || {
        let outcome = Reader::new(&spool, definitions, held, progress, sender).run();
        (spool, outcome)
    });
    let written = write(&mut import, &mut steps).await;
    // Closing the queue stops the reader, if it is still running.
    drop(steps);
    let (spool, read) = reading.await.map_err(|_| Failure::Reader)?;

    let outcome = match (written, read) {
        // An error of the reader concerns an earlier line than the next error of the database.
        (Ok(Ok(())), Ok(end)) => match import.missing_account(&end.accounts).await? {
            Some(account) => Err(Failure::Records(format!(
                "ticketField.accountIds: there is no account `{account}`, neither in the file nor in the store"
            ))),
            None => located(&spool, import.finish().await?).await.map(|()| end.summary),
        },
        (Ok(fault @ Err(_)), _) => located(&spool, fault).await.map(|()| Summary::default()),
        (Err(error), _) => Err(error.into()),
        (Ok(Ok(())), Err(failure)) => Err(failure),
    };
    match outcome {
        Ok(summary) if options.dry_run => {
            import.rollback().await?;
            Ok(summary)
        }
        Ok(summary) => {
            import.commit().await?;
            // Batches and replaced tickets leave partial totals. Until they are folded, every first page with a total has to sum them up.
            if let Err(error) = db.fold_totals().await {
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

async fn write(import: &mut Import, steps: &mut mpsc::Receiver<Step>) -> store::Result<Outcome> {
    while let Some(step) = steps.recv().await {
        match step {
            Step::Reach(conversations) => import.reach(&conversations).await?,
            Step::ReachFormer(kind, ids) => import.reach_former(kind, &ids).await?,
            Step::Hold(kinds) => import.hold(|kind| kinds.contains(&kind)).await?,
            Step::Park(kind, ids) => import.park(kind, &ids).await?,
            Step::Put(batch) => {
                if let Err(fault) = import.put(*batch).await? {
                    return Ok(Err(fault));
                }
            }
        }
    }
    Ok(Ok(()))
}

/// Finds the line of a database error: the input is read again, since its records were not kept.
async fn located(spool: &Spool, outcome: Outcome) -> Result<(), Failure> {
    let Err(Fault { at, property, reason }) = outcome else { return Ok(()) };
    let (kinds, sought, value) = match at {
        At::Line { number, kind } => return Err(Failure::line(number, format!("{}.{property}", kind.name()), reason)),
        At::Where { kinds, property, value } => (kinds, property, value),
    };
    let mut lines = spool.lines()?;
    while let Some((number, text)) = lines.next()? {
        let peek = Peek::of(number, text)?;
        if kinds.contains(&peek.kind) && peek.property(sought).is_some_and(|found| found == value) {
            return Err(Failure::line(number, format!("{}.{property}", peek.kind.name()), reason));
        }
    }
    Err(Failure::Records(match kinds.first() {
        Some(kind) => format!("{} with {sought} `{value}`, already in the store: {property} {reason}", kind.name()),
        None => format!("{property}: {reason}"),
    }))
}

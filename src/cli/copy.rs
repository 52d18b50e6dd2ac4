//! `counterpart copy`: follows the change feed (the list of all changes, in order) of a running server, and so keeps a copy of a store's
//! records up to date.
//!
//! The copy begins with a snapshot and then applies every change. The records and the copy's position in the change feed are committed in
//! one transaction. So the copy resumes at its position after this process or the server stopped or crashed.

mod feed_client;
mod output_file;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use clap::Args;
use reqwest::redirect::Policy;

use self::feed_client::{FeedClient, FetchError, FetchedPage};
use super::{CliResult, Failed, http_client::client, note, serve::public_url};
use crate::{
    config::{settings_token, switch},
    domain::{ids::StoreId, ndjson_records::RecordKind},
    store::{Db, change_feed_copy::CopyPosition},
};

/// The maximum number of records or changes per request.
const PAGE: usize = 500;
/// The time of a long poll in seconds: the server responds earlier if there is a change.
const LONG_POLL_SECONDS: u64 = 30;
/// The base of the exponential backoff. The pause after the n-th failure in a row is this value times 2 to the power of n, at most
/// [`LONGEST_PAUSE`], unless the server asks for a longer pause.
const BACKOFF_BASE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// The number of failures in a row after which `--once` gives up.
const MAX_STEP_FAILURES: u32 = 10;
/// The minimum pause between two writes of the copy's file, as a multiple of the duration of the last write.
const WRITE_PAUSE_FACTOR: u32 = 10;

#[derive(Args, Debug)]
pub struct CopyArgs {
    /// The copy: FILE, a file in the format of `export`, or the URL of a PostgreSQL database, postgres://…
    ///
    /// FILE.copy-state, next to FILE, holds the records and the position of the copy in the change feed; keep it. In PostgreSQL the records
    /// are in the table `counterpart_records`.
    #[arg(long, env = "COUNTERPART_COPY_TO", value_name = "FILE|URL")]
    to: String,

    /// The base URL of the server; the variable COUNTERPART_TOKEN has a token of `counterpart settings token`
    #[arg(long, env = "COUNTERPART_COPY_URL", value_name = "URL", value_parser = public_url, default_value = "http://127.0.0.1:8080")]
    url: String,

    /// End once the copy is current [default: follow the changes until interrupted]
    #[arg(long, env = "COUNTERPART_COPY_ONCE", value_parser = switch())]
    once: bool,
}

impl CopyArgs {
    pub async fn run(self) -> CliResult {
        let token = settings_token().ok_or_else(|| {
            Failed("there is no token; set COUNTERPART_TOKEN to what `counterpart settings token` prints for an owner or admin".to_owned())
        })?;
        let feed = FeedClient { client: client(Policy::none()).map_err(Failed)?, url: self.url, token };
        let is_database = ["postgres://", "postgresql://"].iter().any(|scheme| self.to.starts_with(scheme));
        let file = (!is_database).then(|| PathBuf::from(&self.to));
        let url = file.as_ref().map_or(self.to.clone(), |file| format!("sqlite://{}", output_file::state_of(file).display()));
        let db = Db::open(&url, 1, None).await?;
        db.prepare_copy().await?;
        let mut copying = FollowingCopy { feed, db, file, store: None, unwritten: true, written: None, is_current: false };
        let mut failures = 0;
        loop {
            match copying.step(self.once).await {
                Ok(()) if self.once && copying.is_current => break,
                Ok(()) => failures = 0,
                Err(StepError::Lasting(reason)) => return Err(Failed(reason)),
                Err(StepError::Passing(reason, pause)) => {
                    failures += 1;
                    if self.once && failures >= MAX_STEP_FAILURES {
                        return Err(Failed(reason));
                    }
                    let doubled = BACKOFF_BASE.saturating_mul(1 << failures.min(16)).min(LONGEST_PAUSE);
                    let pause = pause.unwrap_or_default().max(doubled);
                    note(&format!("{reason}; trying again in {} s", pause.as_secs_f64().ceil()));
                    tokio::time::sleep(pause).await;
                }
            }
        }
        Ok(copying.db.close().await?)
    }
}

/// Why a step of the copy failed: for a temporary reason (`Passing`), with the minimum pause that the server asked for, or for a permanent
/// reason (`Lasting`).
enum StepError {
    Passing(String, Option<Duration>),
    Lasting(String),
}

impl<E: Into<Failed>> From<E> for StepError {
    fn from(error: E) -> Self {
        Self::Lasting(error.into().0)
    }
}

/// A copy that follows the change feed, and its progress.
struct FollowingCopy {
    feed: FeedClient,
    /// The database with the copied records: the PostgreSQL database that is the copy, or the SQLite database from which the file is
    /// written.
    db: Db,
    /// The file of the copy. `None` if the copy is a PostgreSQL database.
    file: Option<PathBuf>,
    /// The store to which the token belongs. `None` until the copy or the first response of the server names the store.
    store: Option<StoreId>,
    /// Whether the records in `db` may have changed since the file was last written from them.
    unwritten: bool,
    /// When the file was last written, and how long that took.
    written: Option<(Instant, Duration)>,
    /// Whether the copy contained every change when the server sent its last response.
    is_current: bool,
}

impl FollowingCopy {
    /// Reads the next page of the snapshot or of the change feed, and applies it to the copy.
    async fn step(&mut self, once: bool) -> Result<(), StepError> {
        let known = match &self.store {
            Some(store) => self.db.copy_position(store).await?.map(|position| (store.clone(), position)),
            None => match &self.db.copied_stores().await?[..] {
                // A file holds the copy of one store, so its store is known. A database may hold copies of several stores; the server's
                // first response names the store of the token.
                [store] if self.file.is_some() => self.db.copy_position(store).await?.map(|position| (store.clone(), position)),
                _ => None,
            },
        };
        let Some((store, position)) = known else { return self.begin().await };
        let fetched = match &position.walk {
            Some((kind, after)) => self.feed.records(*kind, after.as_deref(), PAGE).await,
            None => self.feed.changes(position.sequence, if once { 0 } else { self.wait() }, PAGE).await,
        };
        match fetched {
            Ok(page) if page.store != store => Err(self.of_another(&store, &page)),
            Ok(page) => self.apply(store, &position, page).await,
            Err(FetchError::Gone) => {
                note("the server no longer keeps the changes behind this copy; it begins anew with a snapshot");
                let first = self.first_page().await?;
                Ok(self.db.restart_copy(&store, first.next_after).await?)
            }
            Err(FetchError::Passing(reason, pause)) => Err(StepError::Passing(reason, pause)),
            Err(FetchError::Lasting(reason)) => Err(StepError::Lasting(reason)),
        }
    }

    /// Asks the server for the store of the token, and begins a copy of this store unless there is one.
    async fn begin(&mut self) -> Result<(), StepError> {
        let first = self.first_page().await?;
        if self.db.copy_position(&first.store).await?.is_none() {
            self.db.restart_copy(&first.store, first.next_after).await?;
        }
        self.store = Some(first.store);
        Ok(())
    }

    /// Reads the first page of a snapshot. The page names the store, and the position in the change feed from which the copy reads changes
    /// after the snapshot.
    async fn first_page(&self) -> Result<FetchedPage, StepError> {
        self.feed.records(RecordKind::ALL[0], None, 1).await.map_err(|error| match error {
            FetchError::Passing(reason, pause) => StepError::Passing(reason, pause),
            FetchError::Lasting(reason) => StepError::Lasting(reason),
            FetchError::Gone => StepError::Lasting("the server refuses to begin a snapshot".to_owned()),
        })
    }

    fn of_another(&self, store: &StoreId, page: &FetchedPage) -> StepError {
        let to = self.file.as_ref().map_or("the database".to_owned(), |file| format!("`{}`", file.display()));
        StepError::Lasting(format!("{to} is a copy of the store `{store}`, and the token belongs to `{}`; name another file", page.store))
    }

    async fn apply(&mut self, store: StoreId, position: &CopyPosition, page: FetchedPage) -> Result<(), StepError> {
        let next = match &position.walk {
            Some((kind, _)) if page.records.len() >= PAGE => {
                position.moved(position.sequence, Some((*kind, page.records.last().map(|last| last.id.clone()))))
            }
            Some((kind, _)) => position.moved(position.sequence, after_kind(*kind)),
            None => position.moved(page.next_after, None),
        };
        if next != *position && !self.db.apply_to_copy(&store, &page.records, &next).await? {
            return Err(StepError::Lasting("another `counterpart copy` writes to the same copy; end one of them".to_owned()));
        }
        self.unwritten |= !page.records.is_empty();
        self.is_current = position.walk.is_none() && page.is_last;
        if self.is_current && self.unwritten && self.write_pause().is_zero() {
            self.write(&store).await?;
        }
        self.store = Some(store);
        Ok(())
    }

    /// Returns the remaining pause before the file may be written again ([`WRITE_PAUSE_FACTOR`]).
    fn write_pause(&self) -> Duration {
        self.written.map_or(Duration::ZERO, |(at, took)| took.saturating_mul(WRITE_PAUSE_FACTOR).saturating_sub(at.elapsed()))
    }

    /// Returns how many seconds the server may wait for a change before it responds to the next request (long poll): 0 if the copy is not
    /// current, few if the file has to be written soon.
    fn wait(&self) -> u64 {
        if !self.is_current {
            return 0;
        }
        if self.file.is_some() && self.unwritten {
            self.write_pause().as_secs().saturating_add(1).min(LONG_POLL_SECONDS)
        } else {
            LONG_POLL_SECONDS
        }
    }

    async fn write(&mut self, store: &StoreId) -> CliResult {
        if let Some(file) = &self.file {
            let begun = Instant::now();
            output_file::write(&self.db, store, file).await?;
            self.written = Some((Instant::now(), begun.elapsed()));
        }
        self.unwritten = false;
        Ok(())
    }
}

/// Returns the position in a snapshot after the last record of a kind: the start of the next kind. `None` is the end of the snapshot.
fn after_kind(kind: RecordKind) -> Option<(RecordKind, Option<String>)> {
    RecordKind::ALL.into_iter().find(|next| *next > kind).map(|next| (next, None))
}

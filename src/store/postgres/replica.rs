//! Read replica: reads from a hot standby of a PostgreSQL database.
//!
//! Guarantee: a request that reads from the standby sees everything that its store had committed when the request's API key was looked up,
//! whichever process wrote it. API keys are always looked up on the primary.
//!
//! One comparison decides whether the standby shows everything that the store wrote. It needs no wait and no version number in each row.
//! Every write adds a row with its transaction id to the change log, and the look-up of an API key also returns the id of the store's
//! newest transaction. The snapshot of the standby states the lowest id of a transaction that may still be running there; all transactions
//! with lower ids have ended there. If the id of the store's newest transaction is lower than the id in the snapshot, the standby is read;
//! otherwise the primary is read. A snapshot is used for a second. So one query to the standby serves many requests, and a standby that was
//! promoted, or restored to an earlier state, is noticed within that time.
//!
//! The address must be that of one server, a physical standby of this primary: only such a standby numbers transactions as its primary
//! does. If the standby is slow to return a snapshot, one request waits for the snapshot, for at most [`LOOK`]; meanwhile the other
//! requests read from the primary. After a failure no request asks the standby again for [`FAILURE_BACKOFF`]. A statement on the standby
//! may take at most [`STATEMENT_TIMEOUT`].

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::{sync::Mutex as Turn, time::timeout};

use crate::store::{
    Error, Result,
    parameterised_sql::Sql,
    postgres::{pipelined_clients::PipelinedConnections, pipelined_connection::RowSink},
};

/// After a standby has failed, no request uses it for this long.
const FAILURE_BACKOFF: Duration = Duration::from_secs(5);
/// How long a snapshot of a standby is used.
const SNAPSHOT_TTL: Duration = Duration::from_secs(1);
/// How long a standby may take to return its snapshot, connecting included.
pub(in crate::store) const LOOK: Duration = Duration::from_millis(500);
/// How long a standby may take for a statement; after that the statement runs on the primary.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);

const SHOWN: &str = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint, pg_is_in_recovery()";

/// The id of a transaction of the primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Transaction(pub(in crate::store) i64);

pub(in crate::store) struct Replica {
    read: PipelinedConnections,
    seen: Mutex<ReplicaState>,
    /// Held by the request that asks the standby for a new snapshot. Until the snapshot arrives, other requests read from the primary.
    looking: Turn<()>,
}

#[derive(Clone, Copy, Default)]
struct ReplicaState {
    /// The lowest id of a transaction that may still have been running on the standby at this time. All transactions with lower ids had
    /// ended there.
    shown: Option<(i64, Instant)>,
    failed: Option<Instant>,
}

impl Replica {
    /// Creates a replica that reads through these connections. The standby need not be reachable yet.
    pub async fn of(read: PipelinedConnections) -> Self {
        let replica = Self { read, seen: Mutex::default(), looking: Turn::default() };
        if let Err(error) = replica.read_snapshot().await {
            replica.failed(&error);
        }
        replica
    }

    fn seen(&self) -> ReplicaState {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn saw(&self, seen: ReplicaState) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
    }

    pub fn connections(&self) -> u64 {
        self.read.connections()
    }

    pub async fn close(&self) {
        self.read.close().await;
    }

    /// Runs a statement on the standby; returns whether that succeeded. After a failure the standby is not used for [`FAILURE_BACKOFF`].
    pub async fn each_row(&self, sql: &Sql, to: &mut dyn RowSink) -> bool {
        match timeout(STATEMENT_TIMEOUT, self.read.each_row(sql, to)).await {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => self.failed(&error),
            Err(_) => self.failed(&"no answer in time"),
        }
        false
    }

    fn failed(&self, error: &dyn std::fmt::Display) {
        if self.seen().failed.is_none() {
            tracing::warn!(%error, "the read replica failed; the primary is read until it answers again");
        }
        // The former snapshot is discarded: the address may lead to another standby next, which has received fewer transactions.
        self.saw(ReplicaState { shown: None, failed: Some(Instant::now()) });
    }

    async fn read_snapshot(&self) -> Result<()> {
        // Runs on the shared connections, which are for short statements only, so that it does not wait for a long statement.
        let rows = timeout(LOOK, self.read.rows(&Sql::fixed(SHOWN))).await;
        let rows = rows.map_err(|_| Error::Unavailable("no answer in time".to_owned()))??;
        let row = rows.first().ok_or_else(|| Error::Unavailable("no snapshot".to_owned()))?;
        let (xmin, follows): (i64, bool) = (row.try_get(0)?, row.try_get(1)?);
        if !follows {
            return Err(Error::Unavailable("it is no standby; `--read-url` takes a standby of the database".to_owned()));
        }
        self.saw(ReplicaState { shown: Some((xmin, Instant::now())), failed: None });
        Ok(())
    }

    pub async fn shows(&self, newest: Transaction) -> bool {
        let shows = |seen: ReplicaState| seen.shown.is_some_and(|(shown, at)| newest.0 < shown && at.elapsed() < SNAPSHOT_TTL);
        let seen = self.seen();
        if shows(seen) {
            return true;
        }
        if seen.failed.is_some_and(|failed| failed.elapsed() < FAILURE_BACKOFF) {
            return false;
        }
        let Ok(_turn) = self.looking.try_lock() else { return false };
        if let Err(error) = self.read_snapshot().await {
            self.failed(&error);
        }
        shows(self.seen())
    }
}

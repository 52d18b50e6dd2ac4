//! Reads from a standby (hot standby) of a PostgreSQL database.
//!
//! Guarantee: a request that reads here sees everything that its store had committed when the key was looked up, whichever process wrote
//! it. Keys are always looked up on the primary.
//!
//! The check needs no wait and no mark on each row. Every write leaves a row in the change log with its transaction id, and the look-up
//! of a key also returns the id of the store's newest transaction. A snapshot of the standby begins at the oldest transaction whose end
//! the standby may not know; older transactions have ended there too. So one comparison decides whether the standby shows everything that
//! the store wrote; otherwise the primary is read. A snapshot is used for a second, so that the standby is asked once for many requests,
//! and a standby that was promoted or set back is noticed.
//!
//! The address must be that of one server, a physical standby of this primary: only such a standby numbers transactions as its primary
//! does. A slow standby costs one request half a second every five seconds, and the others nothing.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::{sync::Mutex as Turn, time::timeout};

use crate::store::{
    Error, Result,
    postgres::{connection::RowSink, pipelined_clients::PipelinedConnections},
    sql::Sql,
};

/// How long a standby that failed is not asked.
const REST: Duration = Duration::from_secs(5);
/// How long a snapshot of a standby is used.
const FRESH: Duration = Duration::from_secs(1);
/// How long a standby may take to return its snapshot, connecting included.
pub(in crate::store) const LOOK: Duration = Duration::from_millis(500);
/// How long a standby may take to answer a statement; after that the primary is asked.
const PATIENCE: Duration = Duration::from_secs(5);

const SHOWN: &str = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint, pg_is_in_recovery()";

/// A transaction of the primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Transaction(pub(in crate::store) i64);

pub(in crate::store) struct Replica {
    read: PipelinedConnections,
    seen: Mutex<ReplicaState>,
    /// One request at a time asks the standby for its snapshot; the others read from the primary meanwhile.
    looking: Turn<()>,
}

#[derive(Clone, Copy, Default)]
struct ReplicaState {
    /// Every transaction below this one had ended on the standby at that time.
    shown: Option<(i64, Instant)>,
    failed: Option<Instant>,
}

impl Replica {
    /// A standby behind this connection, which need not answer yet.
    pub async fn of(read: PipelinedConnections) -> Self {
        let replica = Self { read, seen: Mutex::default(), looking: Turn::default() };
        if let Err(error) = replica.look().await {
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

    /// Runs a statement; returns whether the standby answered it. A standby that fails is not asked for a while.
    pub async fn each_row(&self, sql: &Sql, to: &mut dyn RowSink) -> bool {
        match timeout(PATIENCE, self.read.each_row(sql, to)).await {
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
        // The standby that answers next may be behind the one that failed.
        self.saw(ReplicaState { shown: None, failed: Some(Instant::now()) });
    }

    async fn look(&self) -> Result<()> {
        // Runs beside the statements that are bounded by their keys, so that it waits for no statement that may take long.
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
        let shows = |seen: ReplicaState| seen.shown.is_some_and(|(shown, at)| newest.0 < shown && at.elapsed() < FRESH);
        let seen = self.seen();
        if shows(seen) {
            return true;
        }
        if seen.failed.is_some_and(|failed| failed.elapsed() < REST) {
            return false;
        }
        let Ok(_turn) = self.looking.try_lock() else { return false };
        if let Err(error) = self.look().await {
            self.failed(&error);
        }
        shows(self.seen())
    }
}

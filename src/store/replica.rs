//! Reads from a standby of a PostgreSQL database.
//!
//! Called by `service`. Guarantees: whoever reads here sees whatever its store had committed when its key was looked up, on
//! whichever process that was written. Keys are looked up on the primary, always.
//!
//! How that is known without waiting and without a mark on each row: every write leaves a row in the change log with its
//! transaction, and the look-up of a key tells the newest transaction of the store. A standby's snapshot begins at the oldest
//! transaction whose end it may not know yet; what is older has ended there too. So one comparison says whether the
//! standby shows all of it, and where it does not, the primary is read. A snapshot that was seen once stays seen, so that
//! a store that rests asks the standby for nothing.
//!
//! Only a physical standby numbers transactions as its primary does. One that was promoted follows nobody, and is not read.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, Statement};

use super::{Db, Error, Result, connect::open_postgres};

/// How long a standby is left alone that failed.
const REST: Duration = Duration::from_secs(5);

const SHOWN: &str = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint, pg_is_in_recovery()";

/// A transaction of the primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Transaction(pub(super) i64);

pub(super) struct Replica {
    read: DatabaseConnection,
    /// Every transaction below this one has ended there.
    shown: AtomicI64,
    failed: Mutex<Option<Instant>>,
}

impl Replica {
    pub fn read(&self) -> &DatabaseConnection {
        &self.read
    }

    /// Notes that it failed; it is left alone for a while.
    pub fn failed(&self, error: &dyn std::fmt::Display) {
        let former = self.failed.lock().unwrap_or_else(PoisonError::into_inner).replace(Instant::now());
        if former.is_none_or(|former| former.elapsed() > REST) {
            tracing::warn!(%error, "the read replica failed; the primary is read for a while");
        }
    }

    fn rests(&self) -> bool {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|failed| failed.elapsed() < REST)
    }

    async fn look(&self) -> Result<()> {
        let row = self.read.query_one_raw(Statement::from_string(DbBackend::Postgres, SHOWN)).await?;
        let row = row.ok_or_else(|| Error::Unavailable("no snapshot".to_owned()))?;
        let (xmin, follows): (i64, bool) = (row.try_get_by_index(0)?, row.try_get_by_index(1)?);
        if !follows {
            return Err(Error::Unavailable("it is no standby; `--read-url` takes a standby of the database".to_owned()));
        }
        self.shown.fetch_max(xmin, Ordering::AcqRel);
        Ok(())
    }

    pub async fn shows(&self, newest: Transaction) -> bool {
        if self.rests() {
            return false;
        }
        if newest.0 >= self.shown.load(Ordering::Acquire)
            && let Err(error) = self.look().await
        {
            self.failed(&error);
            return false;
        }
        newest.0 < self.shown.load(Ordering::Acquire)
    }
}

/// Opens a standby, which need not answer yet.
pub(super) async fn open(db: &Db, url: &str, connections: u32) -> Result<Replica> {
    if db.backend() != DbBackend::Postgres {
        return Err(Error::Unavailable("`--read-url` needs a PostgreSQL database; a SQLite file has no standby".to_owned()));
    }
    let replica =
        Replica { read: db.counted(open_postgres(url, connections, true).await?), shown: AtomicI64::new(0), failed: Mutex::default() };
    if let Err(error) = replica.look().await {
        replica.failed(&error);
    }
    Ok(replica)
}

//! Queries for a sandbox: a database for tests whose clock can be set ahead. They read and move the clock, and find what becomes due when
//! it moves. A lock permits only one server for each sandbox.

use sea_orm::{
    ColumnTrait, Condition, EntityTrait, QueryFilter, QuerySelect,
    sea_query::{Expr, Query},
};

use std::fs::{File, TryLockError};

use crate::{
    domain::{drafts::DraftState, ids::StoreId, settings_access::Via, time::Timestamp},
    store::{
        Db, Error, Result,
        entity::{api_keys, audit, deliveries, drafts, outbound, sandbox, tickets},
        migrate::SANDBOX_ROW_ID,
        parameterised_sql::{Param, Sql},
        postgres::{advisory_locks::AdvisoryLock, pipelined_connection::Connection},
    },
};

/// How many records of a store became due in a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DueCounts {
    /// The number of open tickets whose snooze ended.
    pub tickets_woken: i64,
    /// The number of drafts that expired while they were pending.
    pub drafts_expired: i64,
    pub keys_expired: i64,
    /// The number of webhooks that the server disabled.
    pub webhooks_disabled: i64,
}

/// The lock that makes this process the only server of a sandbox. The operating system or PostgreSQL frees it when the process ends, also
/// after a crash.
pub struct ServerLock {
    _lock: Lock,
}

enum Lock {
    /// A lock on a separate file next to the SQLite file. If this process opened the SQLite file itself for the lock and closed it,
    /// SQLite's own locks on the file would be dropped.
    File { _file: File },
    /// An advisory lock, which PostgreSQL frees when this connection ends. If the connection is lost, [`Db::move_sandbox`] still detects
    /// that another server has moved the clock.
    Session { _connection: Box<Connection> },
}

impl Db {
    /// Locks the sandbox for this server. Fails while another server has the lock.
    pub async fn lock_for_server(&self) -> Result<ServerLock> {
        let taken = || {
            let reason = "another server serves this sandbox, and its clock is that server's; stop that server first";
            Error::Unavailable(reason.to_owned())
        };
        let lock = match self.sqlite_file() {
            Some(path) => {
                let mut path = path.as_os_str().to_owned();
                path.push(".server-lock");
                let unusable =
                    |error: std::io::Error| Error::Unavailable(format!("the file `{}` cannot be locked: {error}", path.display()));
                let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(unusable)?;
                match file.try_lock() {
                    Ok(()) => Lock::File { _file: file },
                    Err(TryLockError::WouldBlock) => return Err(taken()),
                    Err(TryLockError::Error(error)) => return Err(unusable(error)),
                }
            }
            None => {
                let connection = self.connect_alone().await?;
                let lock = Sql::fixed("SELECT pg_try_advisory_lock($1)").with(Param::Integer(AdvisoryLock::SandboxServer.number()));
                let is_ours = connection.rows(&lock).await?.first().map(|row| row.try_get(0)).transpose()?;
                if is_ours != Some(true) {
                    connection.close().await;
                    return Err(taken());
                }
                Lock::Session { _connection: Box::new(connection) }
            }
        };
        Ok(ServerLock { _lock: lock })
    }

    /// Returns by how many milliseconds the clock of the sandbox is ahead of real time. `None` if the database is no sandbox.
    pub async fn sandbox_ahead(&self) -> Result<Option<i64>> {
        Ok(self.find_one(sandbox::Entity::find_by_id(SANDBOX_ROW_ID)).await?.map(|row| row.ahead))
    }

    /// Stores by how many milliseconds the clock of the sandbox is ahead of real time. Fails if the stored value is not `former`: then
    /// another server has moved the clock.
    pub async fn move_sandbox(&self, former: i64, ahead: i64) -> Result<()> {
        let moved = sandbox::Entity::update_many()
            .col_expr(sandbox::Column::Ahead, Expr::value(ahead))
            .filter(sandbox::Column::Id.eq(SANDBOX_ROW_ID))
            .filter(sandbox::Column::Ahead.eq(former));
        if self.execute(&moved).await? == 1 {
            return Ok(());
        }
        Err(Error::Unusable("another server has moved the clock of this sandbox; run one server, and start it again".to_owned()))
    }

    /// Returns the first instant after `at` at which an event is to be delivered or a message is to be sent, in any store.
    pub async fn next_due_after(&self, at: Timestamp) -> Result<Option<Timestamp>> {
        let delivery =
            deliveries::Entity::find().select_only().expr(deliveries::Column::DueAt.min()).filter(deliveries::Column::DueAt.gt(at));
        let outbox_entry =
            outbound::Entity::find().select_only().expr(outbound::Column::DueAt.min()).filter(outbound::Column::DueAt.gt(at));
        let first = |rows: Vec<Option<Timestamp>>| rows.into_iter().flatten().next();
        let delivery = first(self.select(delivery, |cells| cells.take()).await?);
        let outbox_entry = first(self.select(outbox_entry, |cells| cells.take()).await?);
        Ok(delivery.into_iter().chain(outbox_entry).min())
    }

    /// Counts the records of a store that became due after `from` and up to `until`. A webhook that was disabled at the time `from` counts,
    /// too: an advance of the clock begins with the attempts that are due at `from`, and a failed attempt may disable the webhook.
    pub async fn count_due(&self, store: &StoreId, from: Timestamp, until: Timestamp) -> Result<DueCounts> {
        let woken = Condition::all().add(tickets::Column::StoreId.eq(store)).add(tickets::Column::IsOpen.eq(true)).add(within(
            tickets::Column::SnoozedUntil,
            from,
            until,
        ));
        let expired_drafts = Condition::all()
            .add(drafts::Column::StoreId.eq(store))
            .add(drafts::Column::State.eq(DraftState::Pending.name()))
            .add(within(drafts::Column::ExpiresAt, from, until));
        let expired_keys = Condition::all().add(api_keys::Column::StoreId.eq(store)).add(within(api_keys::Column::ExpiresAt, from, until));
        let disabled = Condition::all()
            .add(audit::Column::StoreId.eq(store))
            .add(audit::Column::Action.eq("webhook.disabled"))
            .add(audit::Column::Via.eq(Via::System.name()))
            .add(audit::Column::At.gte(from))
            .add(audit::Column::At.lte(until));
        Ok(DueCounts {
            tickets_woken: self.count_of(tickets::Entity, woken).await?,
            drafts_expired: self.count_of(drafts::Entity, expired_drafts).await?,
            keys_expired: self.count_of(api_keys::Entity, expired_keys).await?,
            webhooks_disabled: self.count_of(audit::Entity, disabled).await?,
        })
    }

    async fn count_of<E: EntityTrait>(&self, table: E, rows: Condition) -> Result<i64> {
        let mut query = Query::select();
        query.expr(Expr::cust("COUNT(*)")).from(table).cond_where(rows);
        Ok(self.select(query, |cells| cells.take()).await?.pop().unwrap_or_default())
    }
}

fn within(column: impl ColumnTrait, from: Timestamp, until: Timestamp) -> Condition {
    Condition::all().add(column.gt(from)).add(column.lte(until))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use sea_orm::ActiveValue::Set;

    use crate::store::{entity::events, fixture::Fixture};

    #[tokio::test]
    async fn the_server_lock_does_not_block_other_database_work() {
        let fixture = Fixture::alone().await;
        let (Fixture { db, url, store, .. }, now) = (&fixture, Timestamp::from_millis(1));
        db.activate_feed(store, now).await.unwrap();
        fixture.contact("new", 1).await;
        let event = events::ActiveModel {
            store_id: Set(store.to_string()),
            id: Set("e".to_owned()),
            kind: Set("contact.created".to_owned()),
            occurred_at: Set(1),
            body: Set(b"{}".to_vec()),
            ..Default::default()
        };
        fixture.put(event).await;
        let lock = db.lock_for_server().await.unwrap();
        let other = Db::open(url, 1, None).await.unwrap();
        assert!(other.lock_for_server().await.is_err());
        let work = async {
            db.number_events(None, now).await.unwrap();
            db.number_record_changes(None, now).await.unwrap();
            db.compact_totals().await.unwrap();
            db.migrate_up().await.unwrap();
        };
        tokio::time::timeout(Duration::from_secs(20), work).await.expect("the work waits for the lock of the server");
        assert_eq!(db.events_after(store, 0, 10).await.unwrap().len(), 1);
        drop(lock);
        other.close().await.unwrap();
    }
}

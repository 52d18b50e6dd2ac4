//! Pipelined clients: shared connections to PostgreSQL, each with many statements in flight at a time.
//!
//! Pipelining saves time: a server process whose next statement has already arrived does not sleep between two statements, and the client
//! receives several results in one read. Statements that read only rows whose keys they list ([`RowBound::Keys`]) share connections, since
//! none of them delays the statements after it for long. A statement that may take longer gets a connection of its own (`pool`). A shared
//! connection and its successors are called a line.
//!
//! Guarantees:
//! - A line has one connection at a time, apart from a connection that is given up while statements are in flight on it.
//! - A connection that has returned no result for [`IDLE_BEFORE_CHECK`] is checked before its next use, so that a connection that hangs is
//!   noticed.
//! - If a connection that had completed a statement before is lost, the statements in flight on it are repeated on the line's next
//!   connection.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{sync::Mutex as Turn, time::timeout};
use tokio_postgres::Row;

use crate::store::{
    Result,
    error::is_lost,
    mutex::lock,
    parameterised_sql::{RowBound, Sql},
    postgres::{
        connect_to_primary::Server,
        pipelined_connection::{Connection, RowLength, RowSink},
        pool::{ConnectionPool, IDLE_BEFORE_CHECK, MAX_CONNECTION_AGE, MAX_IDLE_TIME, closed, pool_timeout_error},
    },
};

/// A line with this many statements in flight is full, and the next line is used. With a lower number the server finds fewer statements
/// waiting; with a higher number the later statements are delayed.
const MAX_PIPELINE_DEPTH: usize = 4;
/// How often a statement is repeated if its connection is lost.
const REPEATS: u32 = 2;

/// The shared connections to one server, and a pool for statements that may take long.
#[derive(Clone)]
pub(in crate::store) struct PipelinedConnections(Arc<PipelineState>);

struct PipelineState {
    server: Arc<Server>,
    lines: Vec<PipelinedConnection>,
    /// The connections for statements that may take long.
    kept: ConnectionPool,
    /// How long a statement waits for a connection.
    patience: Duration,
    closed: AtomicBool,
}

#[derive(Default)]
struct PipelinedConnection {
    open: Mutex<Option<LineConnection>>,
    under_way: AtomicUsize,
    /// Held by the one caller that opens the connection of this line, or checks it after it was idle.
    opening: Turn<()>,
}

/// A reference to a line that runs a statement. The line counts the statement in `under_way` until this reference is dropped.
struct TakenConnection<'a>(&'a PipelinedConnection);

impl Drop for TakenConnection<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

struct LineConnection {
    connection: Arc<Connection>,
    made: Instant,
    /// When the connection last returned a result.
    since: Instant,
    /// Whether the connection has completed a statement.
    used: bool,
}

impl PipelinedConnections {
    /// Creates lines and a pool with at most `connections` connections together, half of them for statements that may take long. If
    /// `connections` is 1, one of each kind is allowed all the same. A connection is opened only when it is needed.
    pub fn new(server: Arc<Server>, connections: u32, patience: Duration) -> Self {
        let shared = (connections / 2).max(1);
        let kept = ConnectionPool::new(server.clone(), connections.saturating_sub(shared), patience);
        let lines = (0..shared).map(|_| PipelinedConnection::default()).collect();
        Self(Arc::new(PipelineState { server, lines, kept, patience, closed: AtomicBool::new(false) }))
    }

    /// Runs a read-only statement, and returns its rows.
    pub async fn rows(&self, sql: &Sql) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        self.each_row(sql, &mut rows).await?;
        Ok(rows)
    }

    /// Runs a read-only statement, and passes its rows to `to`, one by one.
    pub async fn each_row(&self, sql: &Sql, to: &mut dyn RowSink) -> Result<()> {
        if !matches!(sql.row_bound(), RowBound::Keys) {
            return self.0.kept.each_row(sql, to).await;
        }
        let line = self.line();
        let mut repeats = 0;
        loop {
            let connection = timeout(self.0.patience, self.connection(line.0));
            let (connection, used) = connection.await.unwrap_or_else(|_| Err(pool_timeout_error()))?;
            match connection.each_row(sql, to).await {
                Err(error) if is_lost(&error) => {
                    line.0.give_up(&connection);
                    // A statement that makes the server end its connection must not be repeated for ever.
                    if !used || repeats == REPEATS {
                        return Err(error.into());
                    }
                    repeats += 1;
                }
                outcome => {
                    line.0.answered(&connection);
                    return Ok(outcome?);
                }
            }
        }
    }

    /// Returns the number of open connections to the server.
    pub fn connections(&self) -> u64 {
        self.0.server.connections()
    }

    /// Returns the first line with fewer than `MAX_PIPELINE_DEPTH` statements in flight, so that statements share a line. If all lines are
    /// full, returns the line with the fewest.
    fn line(&self) -> TakenConnection<'_> {
        let under_way = |line: &&PipelinedConnection| line.under_way.load(Ordering::Relaxed);
        let lines = &self.0.lines;
        let line = lines
            .iter()
            .find(|line| under_way(line) < MAX_PIPELINE_DEPTH)
            .or_else(|| lines.iter().min_by_key(under_way))
            .unwrap_or(&lines[0]);
        line.under_way.fetch_add(1, Ordering::Relaxed);
        TakenConnection(line)
    }

    /// Returns the connection of a line, and whether it has completed a statement. Opens a connection if the line has no usable one.
    async fn connection(&self, line: &PipelinedConnection) -> Result<(Arc<Connection>, bool)> {
        if let Some(ready) = line.open_since(IDLE_BEFORE_CHECK) {
            return Ok(ready);
        }
        let _turn = line.opening.lock().await;
        if let Some(ready) = line.open_since(IDLE_BEFORE_CHECK) {
            return Ok(ready);
        }
        if let Some((rested, used)) = line.open_since(MAX_IDLE_TIME)
            && rested.answers().await
        {
            line.answered(&rested);
            return Ok((rested, used));
        }
        // Closes the former connection of the line first, since the server may accept no other connection before that.
        drop(lock(&line.open).take());
        if self.0.closed.load(Ordering::Relaxed) {
            return Err(closed());
        }
        let connection = Arc::new(self.0.server.connect_with_retry(RowLength::Short).await?);
        let mut open = lock(&line.open);
        if self.0.closed.load(Ordering::Relaxed) {
            return Err(closed());
        }
        *open = Some(LineConnection { connection: connection.clone(), made: Instant::now(), since: Instant::now(), used: false });
        Ok((connection, false))
    }

    /// Closes the connections. Later statements fail.
    pub async fn close(&self) {
        self.0.closed.store(true, Ordering::Relaxed);
        for line in &self.0.lines {
            let open = lock(&line.open).take();
            // If callers still use the connection, `into_inner` returns `None`, and the connection is closed when the last of these callers
            // drops it.
            if let Some(connection) = open.and_then(|open| Arc::into_inner(open.connection)) {
                connection.close().await;
            }
        }
        self.0.kept.close().await;
    }
}

impl PipelinedConnection {
    /// Returns the open connection, and whether it has completed a statement. `None` if the connection is lost or too old, or has returned
    /// no result for `rest`.
    fn open_since(&self, rest: Duration) -> Option<(Arc<Connection>, bool)> {
        let open = lock(&self.open);
        let usable = |open: &&LineConnection| {
            !open.connection.is_closed() && open.since.elapsed() < rest && open.made.elapsed() < MAX_CONNECTION_AGE
        };
        open.as_ref().filter(usable).map(|open| (open.connection.clone(), open.used))
    }

    fn answered(&self, connection: &Arc<Connection>) {
        if let Some(open) = lock(&self.open).as_mut().filter(|open| Arc::ptr_eq(&open.connection, connection)) {
            (open.since, open.used) = (Instant::now(), true);
        }
    }

    fn give_up(&self, connection: &Arc<Connection>) {
        lock(&self.open).take_if(|open| Arc::ptr_eq(&open.connection, connection));
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, str::FromStr};

    use futures_util::{future::join_all, poll};
    use sea_orm::DbBackend;
    use tokio::time::sleep;

    use super::*;
    use crate::store::{Error, fixture::Fixture, postgres::address::ServerAddress};

    fn lines(url: &str, connections: u32) -> PipelinedConnections {
        let server = Server::of(&ServerAddress::from_str(url).unwrap());
        PipelinedConnections::new(server.into(), connections, Duration::from_secs(5))
    }

    /// Runs a statement that takes this many seconds; returns the id of the server process that ran it.
    async fn process(lines: &PipelinedConnections, seconds: &str) -> i32 {
        let rows = lines.rows(&Sql::fixed(&format!("SELECT pg_backend_pid() FROM pg_sleep({seconds})"))).await.unwrap();
        rows[0].get(0)
    }

    #[tokio::test]
    async fn a_connection_is_filled_to_its_pipeline_depth_before_the_next_is_used() {
        let lines = lines("postgres://nobody@nowhere/nothing", 5);
        let mut taken: Vec<_> = (0..10).map(|_| lines.line()).collect();
        let at = |taken: &TakenConnection<'_>| lines.0.lines.iter().position(|line| std::ptr::eq(line, taken.0)).unwrap();
        assert_eq!(taken.iter().map(at).collect::<Vec<_>>(), [0, 0, 0, 0, 1, 1, 1, 1, 0, 1]);
        taken.drain(..2);
        taken.extend([lines.line(), lines.line()]);
        assert_eq!(taken.iter().map(at).collect::<Vec<_>>(), [0, 0, 1, 1, 1, 1, 0, 1, 0, 0]);
        drop(taken);
        assert_eq!(at(&lines.line()), 0);
    }

    #[tokio::test]
    async fn short_statements_share_a_connection_and_long_ones_get_their_own() {
        let fixture = Fixture::new().await;
        if fixture.db.backend() != DbBackend::Postgres {
            return;
        }
        let lines = lines(&fixture.url, 2);
        let mut long = Sql::fixed("SELECT pg_backend_pid() FROM pg_sleep(1)");
        long.unbounded();
        let mut long = Box::pin(lines.rows(&long));
        assert!(poll!(&mut long).is_pending());
        let all: BTreeSet<i32> = join_all((0..40).map(|_| process(&lines, "0"))).await.into_iter().collect();
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(poll!(&mut long).is_pending());
        assert!(!all.contains(&long.await.unwrap()[0].get(0)));
        // A caller that stops waiting leaves the connection usable.
        for _ in 0..3 {
            assert!(timeout(Duration::from_millis(20), process(&lines, "0.1")).await.is_err());
        }
        assert!(lines.rows(&Sql::fixed("SELECT 1 / 0")).await.is_err());
        assert!(all.contains(&process(&lines, "0").await));
        assert_eq!(lines.0.lines[0].under_way.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn a_lost_connection_is_replaced_and_its_statements_are_repeated() {
        let fixture = Fixture::new().await;
        if fixture.db.backend() != DbBackend::Postgres {
            return;
        }
        let lines = lines(&fixture.url, 2);
        let end = async |one: i32| fixture.execute(&format!("SELECT pg_terminate_backend({one})")).await.unwrap();
        let first = process(&lines, "0").await;
        let under_way = join_all((0..3).map(|_| process(&lines, "0.2")));
        let ended = async {
            sleep(Duration::from_millis(100)).await;
            end(first).await;
        };
        let (repeated, ()) = tokio::join!(under_way, ended);
        let second = repeated[0];
        assert!(second != first && repeated == [second; 3], "{first}: {repeated:?}");
        // An idle connection is checked, and is used again if it responds.
        let rest = || lock(&lines.0.lines[0].open).as_mut().unwrap().since -= IDLE_BEFORE_CHECK;
        rest();
        assert_eq!(process(&lines, "0").await, second);
        end(second).await;
        rest();
        let third = process(&lines, "0").await;
        assert_ne!(third, second);
        lock(&lines.0.lines[0].open).as_mut().unwrap().made -= MAX_CONNECTION_AGE;
        let fourth = process(&lines, "0").await;
        assert_ne!(fourth, third);
        lines.close().await;
        for mut sql in [Sql::fixed("SELECT 1"), Sql::fixed("SELECT 2")] {
            assert!(matches!(lines.rows(&sql).await, Err(Error::Unavailable(_))));
            sql.unbounded();
            assert!(matches!(lines.rows(&sql).await, Err(Error::Unavailable(_))));
        }
    }

    #[tokio::test]
    async fn an_unreachable_server_is_reported_within_the_timeout() {
        let server = Server::of(&ServerAddress::from_str("postgres://nobody@127.0.0.1:1/nothing").unwrap());
        let lines = PipelinedConnections::new(server.into(), 2, Duration::from_millis(50));
        let got = join_all((0..3).map(|_| async { lines.rows(&Sql::fixed("SELECT 1")).await.map(|_| ()) })).await;
        assert!(got.iter().all(|got| matches!(got, Err(Error::Unavailable(_)))), "{got:?}");
    }

    #[tokio::test]
    async fn an_expired_connection_is_closed_before_its_replacement_opens() {
        let fixture = Fixture::new().await;
        if fixture.db.backend() != DbBackend::Postgres {
            return;
        }
        let role = format!("one connection of {}", fixture.store);
        fixture.execute(&format!("CREATE ROLE \"{role}\" LOGIN CONNECTION LIMIT 1")).await.unwrap();
        let options = ServerAddress::from_str(&fixture.url).unwrap().with(|options| options.username(&role));
        let lines = PipelinedConnections::new(Server::of(&options).into(), 2, Duration::from_secs(5));
        let first = process(&lines, "0").await;
        lock(&lines.0.lines[0].open).as_mut().unwrap().made -= MAX_CONNECTION_AGE;
        assert_ne!(process(&lines, "0").await, first);
        lines.close().await;
        fixture.execute(&format!("DROP ROLE \"{role}\"")).await.unwrap();
    }
}

//! Size of the runtime's thread pool. The default depends on the number of processors and on the database.
//!
//! - SQLite: one thread more than processors, since one thread may block on the disk (`store::sqlite::group_commit`).
//! - PostgreSQL on another machine: one thread per processor, since no thread blocks. Measurements showed that one more thread slows down
//!   requests for tickets.
//! - PostgreSQL on this machine: half as many threads as processors, since the database server needs the other processors for the same
//!   requests. Measurements on two processors showed that with a thread per processor, this process and the database server mostly preempt
//!   each other.

use std::thread::available_parallelism;

use super::{Cli, Command};
use crate::store::is_local_server;

impl Cli {
    /// Returns the number of threads: the option, or the default for the database.
    pub fn threads(&self) -> usize {
        // A demo has its own SQLite file, whatever the database URL is.
        let database_url = if matches!(self.command, Command::Demo(_)) { "sqlite:" } else { &self.config.database_url };
        let usual = || usual(available_parallelism().map_or(1, usize::from), database_url);
        self.config.threads.map_or_else(usual, usize::from)
    }
}

fn usual(processors: usize, database_url: &str) -> usize {
    if database_url.starts_with("sqlite:") {
        processors + 1
    } else if is_local_server(database_url) {
        (processors / 2).max(1)
    } else {
        processors
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn a_local_database_gets_half_the_processors() {
        for (url, threads) in [
            ("sqlite://counterpart.db", [2, 3, 9]),
            ("postgres://user@db.example.com/name", [1, 2, 8]),
            ("postgres://user@192.0.2.1:5432/name?sslmode=require", [1, 2, 8]),
            ("postgres://user@localhost/name", [1, 1, 4]),
            ("postgresql://user:word@127.0.0.1:6543/name", [1, 1, 4]),
            ("postgres://user@[::1]/name", [1, 1, 4]),
            ("postgres://user@%2Fvar%2Frun%2Fpostgresql/name", [1, 1, 4]),
            ("postgres:///name?host=/var/run/postgresql", [1, 1, 4]),
            ("postgres:///name", [1, 1, 4]),
            ("postgres://user@LocalHost/name", [1, 1, 4]),
            ("neither", [1, 2, 8]),
        ] {
            assert_eq!([1, 2, 8].map(|processors| usual(processors, url)), threads, "{url}");
        }
    }

    #[test]
    fn the_option_sets_the_number_of_threads() {
        let got = Cli::try_parse_from(["counterpart", "serve", "--threads", "5"]).unwrap();
        assert_eq!(got.threads(), 5);
        assert!(Cli::try_parse_from(["counterpart", "serve", "--threads", "0"]).is_err());
        let demo = Cli::try_parse_from(["counterpart", "demo", "--database-url", "postgres://localhost/name"]).unwrap();
        assert_eq!(demo.threads(), 1 + available_parallelism().unwrap().get());
    }
}

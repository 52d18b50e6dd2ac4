//! How many threads the runtime has, unless told otherwise.
//!
//! On SQLite one more than there are processors, since one may wait for the disk (`store::writer`); on PostgreSQL, where none does, it
//! would cost a ticket 7 in 100. A PostgreSQL on this machine works on the same requests and needs processors too: with a thread for
//! each of them, all would mostly wake and interrupt each other, which on two processors costs a ticket a third more, and a page a fifth.

use std::thread::available_parallelism;

use super::{Cli, Command};
use crate::store::is_beside;

impl Cli {
    /// Those of the runtime: as many as the command line says, or as suit the database.
    pub fn threads(&self) -> usize {
        // A demo has a file of its own.
        let database_url = if matches!(self.command, Command::Demo(_)) { "sqlite:" } else { &self.config.database_url };
        let usual = || usual(available_parallelism().map_or(1, usize::from), database_url);
        self.config.threads.map_or_else(usual, usize::from)
    }
}

fn usual(processors: usize, database_url: &str) -> usize {
    if database_url.starts_with("sqlite:") {
        processors + 1
    } else if is_beside(database_url) {
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
    fn a_database_on_this_machine_is_left_half_the_processors() {
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
    fn who_says_how_many_gets_them() {
        let told = Cli::try_parse_from(["counterpart", "serve", "--threads", "5"]).unwrap();
        assert_eq!(told.threads(), 5);
        assert!(Cli::try_parse_from(["counterpart", "serve", "--threads", "0"]).is_err());
        let demo = Cli::try_parse_from(["counterpart", "demo", "--database-url", "postgres://localhost/name"]).unwrap();
        assert_eq!(demo.threads(), 1 + available_parallelism().unwrap().get());
    }
}

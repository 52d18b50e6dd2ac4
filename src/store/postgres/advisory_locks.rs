//! Advisory locks of PostgreSQL: the keys that this program locks. One enumeration holds all keys, so that no two are the same.

/// An advisory lock, named after the work that only one holder may do at a time.
#[derive(Clone, Copy)]
#[repr(i64)]
pub enum AdvisoryLock {
    Migration = 7_305_809_155_955_060,
    EventNumbers = 7_305_809_155_955_061,
    /// For adding up partial totals. Transactions that add them up in different orders would wait for each other.
    Totals = 7_305_809_155_955_062,
    ChangeNumbers = 7_305_809_155_955_063,
    SandboxServer = 7_305_809_155_955_064,
}

impl AdvisoryLock {
    pub const fn number(self) -> i64 {
        self as i64
    }

    /// Returns the statement that takes the lock until the end of the transaction.
    pub fn of_transaction(self) -> String {
        format!("SELECT pg_advisory_xact_lock({})", self.number())
    }
}

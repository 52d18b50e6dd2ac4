//! Advisory locks of PostgreSQL that this program takes. PostgreSQL identifies an advisory lock only by a number; one enumeration has all
//! numbers, so that no two locks share a number.

/// An advisory lock, named after the work that only one holder may do at a time.
#[derive(Clone, Copy)]
#[repr(i64)]
pub enum AdvisoryLock {
    Migration = 7_305_809_155_955_060,
    EventNumbers = 7_305_809_155_955_061,
    /// Held while the partial totals of records are added up. Without this lock, transactions that add them up in different orders would
    /// wait for each other (deadlock).
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

//! Advisory locks: the numbers that this program locks on PostgreSQL. In one enumeration, no two of them can be the same.

/// What a lock keeps others from doing at the same time.
#[derive(Clone, Copy)]
#[repr(i64)]
pub enum AdvisoryLock {
    Migration = 7_305_809_155_955_060,
    EventNumbers = 7_305_809_155_955_061,
    /// Transactions that added parts of totals up in different orders would wait for each other.
    Totals = 7_305_809_155_955_062,
    ChangeNumbers = 7_305_809_155_955_063,
    SandboxServer = 7_305_809_155_955_064,
}

impl AdvisoryLock {
    pub const fn number(self) -> i64 {
        self as i64
    }

    /// The statement that takes the lock until the end of the transaction.
    pub fn of_transaction(self) -> String {
        format!("SELECT pg_advisory_xact_lock({})", self.number())
    }
}

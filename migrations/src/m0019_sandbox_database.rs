//! Table with one row if the database is a sandbox, which is a database for tests whose clock can be advanced. The row has the time by
//! which the clock is ahead.

crate::migration!(
    "m0019_sandbox",
    tables: ["sandbox"],
    r#"
CREATE TABLE sandbox (
    id BIGINT NOT NULL PRIMARY KEY,
    -- Milliseconds by which the clock is ahead of real time.
    ahead BIGINT NOT NULL
);
"#
);

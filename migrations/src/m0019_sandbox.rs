//! Table of the sandbox: if it has a row, the database is a sandbox, and the row says how far its clock is ahead.

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

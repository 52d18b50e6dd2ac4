//! Table of the sandbox: a row in it marks the database as a sandbox, and says how far its clock is ahead.

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

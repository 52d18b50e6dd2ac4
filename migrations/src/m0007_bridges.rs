//! Endpoints that the messages of a channel account are handed to.

crate::migration!(
    "m0007_bridges",
    tables: ["bridges", "bridge_secrets"],
    r#"
CREATE TABLE bridges (
    store_id {text} NOT NULL,
    account_id {text} NOT NULL,
    url TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (store_id, account_id),
    FOREIGN KEY (store_id, account_id) REFERENCES accounts (store_id, id) DEFERRABLE INITIALLY DEFERRED
);

-- What messages are signed with: kept whole, since a signature cannot be made from a hash.
CREATE TABLE bridge_secrets (
    position {serial},
    store_id {text} NOT NULL,
    account_id {text} NOT NULL,
    secret {bytes} NOT NULL,
    -- Set on one that was superseded.
    ends_at BIGINT,
    FOREIGN KEY (store_id, account_id) REFERENCES bridges (store_id, account_id) DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX bridge_secrets_by_bridge ON bridge_secrets (store_id, account_id, position)
"#
);

//! Tables of bridges: HTTP endpoints that deliver the messages of a channel account.

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

-- Signing secrets. They are not stored as hashes, since a signature cannot be made from a hash.
CREATE TABLE bridge_secrets (
    position {serial},
    store_id {text} NOT NULL,
    account_id {text} NOT NULL,
    secret {bytes} NOT NULL,
    -- Until when the server signs with this secret. NULL until a rotation replaces the secret.
    ends_at BIGINT,
    FOREIGN KEY (store_id, account_id) REFERENCES bridges (store_id, account_id) DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX bridge_secrets_by_bridge ON bridge_secrets (store_id, account_id, position)
"#
);

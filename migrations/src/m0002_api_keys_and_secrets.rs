//! Tables of API keys (sections 3.2 and 5 of the API contract) with their secrets, and of the server's own secrets.

crate::migration!(
    "m0002_access",
    tables: ["api_keys", "api_key_secrets", "server_secrets"],
    r#"
CREATE TABLE api_keys (
    store_id {text} NOT NULL REFERENCES stores (id),
    id {text} NOT NULL,
    name TEXT NOT NULL,
    -- Scope names, one space between them.
    scopes TEXT NOT NULL,
    active BOOLEAN NOT NULL,
    -- The user for whom the key acts; NULL: the store's oldest owner.
    owner_user_id {text},
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    last_used_at BIGINT,
    PRIMARY KEY (store_id, id)
);

-- One row per secret of a key: the newest secret, and the earlier ones. An earlier secret expires at most two hours after the rotation that
-- replaced it. Its row stays until the key is deleted.
CREATE TABLE api_key_secrets (
    -- SHA-256 of the secret, in hexadecimal; the secret itself is never stored.
    hash {text} PRIMARY KEY,
    store_id {text} NOT NULL,
    key_id {text} NOT NULL,
    last_four TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    FOREIGN KEY (store_id, key_id) REFERENCES api_keys (store_id, id) ON DELETE CASCADE
) {clustered};
CREATE INDEX api_key_secrets_by_key ON api_key_secrets (store_id, key_id, created_at);

-- Secrets of the server itself, by name, such as the key that authenticates cursors. Each secret is generated once per database and shared
-- by all processes on the database.
CREATE TABLE server_secrets (
    name {text} PRIMARY KEY,
    value {bytes} NOT NULL
)
"#
);

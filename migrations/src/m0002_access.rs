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

-- One row per valid secret: the newest one of a key, and those that are valid for two hours after a rotation.
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

-- Generated once per database and shared by all its processes: the secret that seals cursors.
CREATE TABLE server_secrets (
    name {text} PRIMARY KEY,
    value {bytes} NOT NULL
)
"#
);

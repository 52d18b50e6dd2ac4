//! Table of the credentials with which users change a store's settings (`grants`), and the audit log.

crate::migration!(
    "m0006_settings",
    tables: ["grants", "audit"],
    r#"
-- Credentials of users: a link that opens one session, a session, or a token for a program.
CREATE TABLE grants (
    -- SHA-256 of the secret, in hexadecimal; the secret itself is never stored.
    hash {text} PRIMARY KEY,
    store_id {text} NOT NULL REFERENCES stores (id),
    user_id {text} NOT NULL,
    kind {text} NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
) {clustered};
CREATE INDEX grants_by_user ON grants (store_id, user_id);

CREATE TABLE audit (
    position {serial},
    store_id {text} NOT NULL REFERENCES stores (id),
    at BIGINT NOT NULL,
    -- NULL: the command line, or the server itself.
    user_id {text},
    -- `session`, `token`, `command_line` or `system`.
    via TEXT NOT NULL,
    request_id TEXT,
    action {text} NOT NULL,
    subject_kind {text} NOT NULL,
    subject_id {text} NOT NULL,
    -- A JSON object.
    detail TEXT NOT NULL
);
CREATE INDEX audit_by_store ON audit (store_id, position);
CREATE INDEX audit_by_subject ON audit (store_id, subject_kind, position);
APPEND ONLY audit
"#
);

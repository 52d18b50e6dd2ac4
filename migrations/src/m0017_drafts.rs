//! Table of drafts: messages that an assistant proposes and that a user approves (releases) or discards.

crate::migration!(
    "m0017_drafts",
    tables: ["drafts"],
    r#"
CREATE TABLE drafts (
    store_id {text} NOT NULL REFERENCES stores (id),
    id {text} NOT NULL,
    -- The API key that made the draft, and its name at that time. No foreign key: a draft stays if its API key is deleted.
    key_id {text} NOT NULL,
    key_name TEXT NOT NULL,
    operation {text} NOT NULL,
    -- A JSON object: the request body of the operation, with the operation as a further member.
    content TEXT NOT NULL,
    conversation_id {text},
    account_id {text},
    -- The newest inbound message of the conversation when the draft was made or last edited.
    seen_message_id {text},
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    -- `pending`, `released` or `discarded`.
    state {text} NOT NULL,
    settled_at BIGINT,
    -- NULL: the command line.
    settled_by {text},
    PRIMARY KEY (store_id, id)
);
CREATE INDEX drafts_by_state ON drafts (store_id, state, created_at, id)
"#
);

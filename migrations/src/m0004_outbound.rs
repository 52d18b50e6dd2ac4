//! Messages on their way to a channel.

crate::migration!(
    "m0004_outbound",
    tables: ["outbound"],
    r#"
-- A row commits with its message, and goes with the transaction that says what became of it.
CREATE TABLE outbound (
    position {serial},
    store_id {text} NOT NULL REFERENCES stores (id),
    message_id {text} NOT NULL,
    conversation_id {text} NOT NULL,
    account_id {text} NOT NULL,
    -- What the channel is handed.
    parcel TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    -- When it is tried next; while somebody tries it, when another may take it over.
    due_at BIGINT NOT NULL,
    -- Names the attempt that is going on.
    claim {text}
);
CREATE UNIQUE INDEX outbound_by_message ON outbound (store_id, message_id);
-- The messages of one conversation reach the channel in their order.
CREATE INDEX outbound_by_conversation ON outbound (store_id, conversation_id, position);
CREATE INDEX outbound_by_due ON outbound (due_at)
"#
);

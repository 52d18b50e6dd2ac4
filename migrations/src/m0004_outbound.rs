//! Table of the outbox of messages to channels.

crate::migration!(
    "m0004_outbound",
    tables: ["outbound"],
    r#"
-- A row is inserted in the transaction that stores its message, and is deleted in the transaction that records the final outcome.
CREATE TABLE outbound (
    position {serial},
    store_id {text} NOT NULL REFERENCES stores (id),
    message_id {text} NOT NULL,
    conversation_id {text} NOT NULL,
    account_id {text} NOT NULL,
    -- The outbox entry as JSON: what is sent to the channel.
    parcel TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    -- When the next attempt is due. During an attempt: when its lease expires, after which another process may make the attempt again.
    due_at BIGINT NOT NULL,
    -- The id of the current attempt.
    claim {text}
);
CREATE UNIQUE INDEX outbound_by_message ON outbound (store_id, message_id);
-- For the order of the messages of one conversation.
CREATE INDEX outbound_by_conversation ON outbound (store_id, conversation_id, position);
CREATE INDEX outbound_by_due ON outbound (due_at)
"#
);

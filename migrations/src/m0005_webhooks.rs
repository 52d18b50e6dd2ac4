//! Tables of webhook subscriptions, of the queue of their deliveries, and of the log of delivery attempts.

crate::migration!(
    "m0005_webhooks",
    tables: ["webhooks", "webhook_kinds", "webhook_secrets", "deliveries", "attempts"],
    r#"
CREATE TABLE webhooks (
    store_id {text} NOT NULL REFERENCES stores (id),
    id {text} NOT NULL,
    url TEXT NOT NULL,
    -- NULL: events of all accounts. Otherwise the webhook receives only events of this account.
    account_id {text},
    enabled BOOLEAN NOT NULL,
    disabled_reason TEXT,
    -- The time since which every attempt has failed.
    failing_since BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (store_id, id)
);

-- The kinds of events that a subscription receives. A subscription without rows here receives all kinds.
CREATE TABLE webhook_kinds (
    store_id {text} NOT NULL,
    webhook_id {text} NOT NULL,
    kind {text} NOT NULL,
    PRIMARY KEY (store_id, webhook_id, kind),
    FOREIGN KEY (store_id, webhook_id) REFERENCES webhooks (store_id, id) DEFERRABLE INITIALLY DEFERRED
) {clustered};

-- Signing secrets. They are not stored as hashes, since a signature cannot be made from a hash.
CREATE TABLE webhook_secrets (
    position {serial},
    store_id {text} NOT NULL,
    webhook_id {text} NOT NULL,
    secret {bytes} NOT NULL,
    -- Until when the server signs with this secret. NULL until a rotation replaces the secret.
    ends_at BIGINT,
    FOREIGN KEY (store_id, webhook_id) REFERENCES webhooks (store_id, id) DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX webhook_secrets_by_webhook ON webhook_secrets (store_id, webhook_id, position);

-- A row is one event that is to be delivered to one webhook.
CREATE TABLE deliveries (
    position {serial},
    store_id {text} NOT NULL,
    webhook_id {text} NOT NULL,
    event_id {text} NOT NULL,
    kind TEXT NOT NULL,
    -- `sequence` is the number of a recorded event, and `body` is the body of a test event. A row has one of the two.
    sequence BIGINT,
    body {bytes},
    attempts BIGINT NOT NULL,
    -- When the next attempt is due. During an attempt: when its lease expires, after which another process may make the attempt again.
    -- NULL: no further attempt.
    due_at BIGINT,
    -- The id of the current attempt.
    claim {text},
    delivered_at BIGINT,
    FOREIGN KEY (store_id, webhook_id) REFERENCES webhooks (store_id, id) DEFERRABLE INITIALLY DEFERRED
);
CREATE UNIQUE INDEX deliveries_by_event ON deliveries (store_id, webhook_id, event_id);
CREATE INDEX deliveries_by_due ON deliveries (store_id, webhook_id, due_at, position) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_due ON deliveries (due_at) WHERE due_at IS NOT NULL;

-- The log of delivery attempts. Rows are never changed, and are deleted only with their webhook.
CREATE TABLE attempts (
    position {serial},
    store_id {text} NOT NULL,
    webhook_id {text} NOT NULL,
    event_id {text} NOT NULL,
    kind TEXT NOT NULL,
    -- The URL that the attempt was made to; the webhook may have another by now.
    url TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    -- How long the attempt took, in milliseconds.
    took BIGINT NOT NULL,
    -- The status of the response, if there was one.
    status BIGINT,
    reason TEXT,
    outcome TEXT NOT NULL,
    next_at BIGINT
);
CREATE INDEX attempts_by_webhook ON attempts (store_id, webhook_id, position)
"#
);

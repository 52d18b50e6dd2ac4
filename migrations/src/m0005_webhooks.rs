//! Tables of webhook subscriptions, their delivery queue, and the attempt log.

crate::migration!(
    "m0005_webhooks",
    tables: ["webhooks", "webhook_kinds", "webhook_secrets", "deliveries", "attempts"],
    r#"
CREATE TABLE webhooks (
    store_id {text} NOT NULL REFERENCES stores (id),
    id {text} NOT NULL,
    url TEXT NOT NULL,
    -- Set: only events of this account, and none without an account.
    account_id {text},
    enabled BOOLEAN NOT NULL,
    disabled_reason TEXT,
    -- Since when every attempt has failed.
    failing_since BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (store_id, id)
);

-- A subscription without rows here receives all kinds.
CREATE TABLE webhook_kinds (
    store_id {text} NOT NULL,
    webhook_id {text} NOT NULL,
    kind {text} NOT NULL,
    PRIMARY KEY (store_id, webhook_id, kind),
    FOREIGN KEY (store_id, webhook_id) REFERENCES webhooks (store_id, id) DEFERRABLE INITIALLY DEFERRED
) {clustered};

-- Signing secrets, stored whole, since a signature cannot be made from a hash.
CREATE TABLE webhook_secrets (
    position {serial},
    store_id {text} NOT NULL,
    webhook_id {text} NOT NULL,
    secret {bytes} NOT NULL,
    -- Set after a rotation.
    ends_at BIGINT,
    FOREIGN KEY (store_id, webhook_id) REFERENCES webhooks (store_id, id) DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX webhook_secrets_by_webhook ON webhook_secrets (store_id, webhook_id, position);

-- One event for one subscription.
CREATE TABLE deliveries (
    position {serial},
    store_id {text} NOT NULL,
    webhook_id {text} NOT NULL,
    event_id {text} NOT NULL,
    kind TEXT NOT NULL,
    -- The number of a recorded event, or the body of a test event.
    sequence BIGINT,
    body {bytes},
    attempts BIGINT NOT NULL,
    -- When the next attempt is due; during an attempt, when its lease expires; NULL: no further attempt.
    due_at BIGINT,
    -- The id of the current attempt.
    claim {text},
    delivered_at BIGINT,
    FOREIGN KEY (store_id, webhook_id) REFERENCES webhooks (store_id, id) DEFERRABLE INITIALLY DEFERRED
);
CREATE UNIQUE INDEX deliveries_by_event ON deliveries (store_id, webhook_id, event_id);
CREATE INDEX deliveries_by_due ON deliveries (store_id, webhook_id, due_at, position) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_due ON deliveries (due_at) WHERE due_at IS NOT NULL;

-- Append-only.
CREATE TABLE attempts (
    position {serial},
    store_id {text} NOT NULL,
    webhook_id {text} NOT NULL,
    event_id {text} NOT NULL,
    kind TEXT NOT NULL,
    -- The URL at that time: it may have changed since.
    url TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    -- Milliseconds.
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

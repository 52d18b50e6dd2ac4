//! Subscriptions to events, what is delivered to them, and every attempt to.

crate::migration!(
    "m0005_webhooks",
    tables: ["webhooks", "webhook_kinds", "webhook_secrets", "deliveries", "attempts"],
    r#"
CREATE TABLE webhooks (
    store_id {text} NOT NULL REFERENCES stores (id),
    id {text} NOT NULL,
    url TEXT NOT NULL,
    -- Set: only events of this account, and none that have no account.
    account_id {text},
    enabled BOOLEAN NOT NULL,
    disabled_reason TEXT,
    -- Since when nothing but failures came from the endpoint.
    failing_since BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (store_id, id)
);

-- Without a row here a subscription is to every kind.
CREATE TABLE webhook_kinds (
    store_id {text} NOT NULL,
    webhook_id {text} NOT NULL,
    kind {text} NOT NULL,
    PRIMARY KEY (store_id, webhook_id, kind),
    FOREIGN KEY (store_id, webhook_id) REFERENCES webhooks (store_id, id) DEFERRABLE INITIALLY DEFERRED
) {clustered};

-- What deliveries are signed with: kept whole, since a signature cannot be made from a hash.
CREATE TABLE webhook_secrets (
    position {serial},
    store_id {text} NOT NULL,
    webhook_id {text} NOT NULL,
    secret {bytes} NOT NULL,
    -- Set on one that was superseded.
    ends_at BIGINT,
    FOREIGN KEY (store_id, webhook_id) REFERENCES webhooks (store_id, id) DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX webhook_secrets_by_webhook ON webhook_secrets (store_id, webhook_id, position);

-- One event to one subscription.
CREATE TABLE deliveries (
    position {serial},
    store_id {text} NOT NULL,
    webhook_id {text} NOT NULL,
    event_id {text} NOT NULL,
    kind TEXT NOT NULL,
    -- The number of a recorded event, or the bytes of one that was made to test the endpoint.
    sequence BIGINT,
    body {bytes},
    attempts BIGINT NOT NULL,
    -- When it is tried next; while somebody tries it, when another may take it over; absent: not again.
    due_at BIGINT,
    -- Names the attempt that is going on.
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
    -- Where it was sent to: a subscription may have moved since.
    url TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    -- Milliseconds.
    took BIGINT NOT NULL,
    -- What the endpoint answered, if it did.
    status BIGINT,
    reason TEXT,
    outcome TEXT NOT NULL,
    next_at BIGINT
);
CREATE INDEX attempts_by_webhook ON attempts (store_id, webhook_id, position)
"#
);

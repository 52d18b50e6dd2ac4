//! What writes leave behind: counters, recorded events, the change log, kept answers.

crate::migration!(
    "m0003_journal",
    tables: ["counters", "events", "changes", "forgotten_changes", "idempotency_keys"],
    r#"
-- Per-store sequences and counts, moved in the transaction that they count.
CREATE TABLE counters (
    store_id {text} NOT NULL REFERENCES stores (id),
    name {text} NOT NULL,
    value BIGINT NOT NULL,
    PRIMARY KEY (store_id, name)
) {clustered};

-- The transactional outbox. A row commits with its change and without a number; whoever reads numbers the committed rows,
-- so that writers do not queue for the sequence.
-- No reference to `stores`: writers of one store would take turns at marking its row, for a store that each of them has
-- just read.
CREATE TABLE events (
    position {serial},
    store_id {text} NOT NULL,
    id {text} NOT NULL,
    sequence BIGINT,
    type {text} NOT NULL,
    -- The channel account that it happened on, if it did on one.
    account_id {text},
    occurred_at BIGINT NOT NULL,
    body {bytes} NOT NULL
);
CREATE UNIQUE INDEX events_by_id ON events (store_id, id);
-- Without those that wait for their number, so that they cost nothing here.
CREATE UNIQUE INDEX events_by_sequence ON events (store_id, sequence) WHERE sequence IS NOT NULL;
CREATE INDEX events_to_number ON events (position) WHERE sequence IS NULL;

-- Which searchable records changed, in order; the search index follows it. On PostgreSQL a transaction that changed others
-- alone leaves one row too, by which it is told whether a standby shows it.
-- No reference to `stores`: it would cost a look-up for each row of an import, for a log that can be made again.
CREATE TABLE changes (
    position {serial},
    store_id {text} NOT NULL,
    kind TEXT NOT NULL,
    -- One id, or several of an import, a line each.
    record_ids {text} NOT NULL,
    changed_at BIGINT NOT NULL,
    -- On PostgreSQL the writing transaction, by which a reader tells what it has not seen: positions are handed out
    -- before they commit. 0 on SQLite, where one writer makes the two orders the same.
    transaction_id BIGINT NOT NULL
);
-- Empty on SQLite, whose readers need the position alone.
CREATE INDEX changes_by_transaction ON changes (transaction_id, position) WHERE transaction_id > 0;
CREATE INDEX changes_by_store ON changes (store_id, transaction_id) WHERE transaction_id > 0;

-- One row: through which transaction something was forgotten of `changes`; through which position on SQLite.
CREATE TABLE forgotten_changes (
    through BIGINT NOT NULL
);
INSERT INTO forgotten_changes (through) VALUES (0);

CREATE TABLE idempotency_keys (
    store_id {text} NOT NULL REFERENCES stores (id),
    operation {text} NOT NULL,
    key {text} NOT NULL,
    request_hash TEXT NOT NULL,
    status BIGINT,
    body {bytes},
    created_at BIGINT NOT NULL,
    PRIMARY KEY (store_id, operation, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (store_id, created_at)
"#
);

//! Tables of counters, events (transactional outbox), the change log, and stored responses (idempotency).

crate::migration!(
    "m0003_journal",
    tables: ["counters", "events", "changes", "forgotten_changes", "idempotency_keys"],
    r#"
-- Counters of each store, by name. For example, the transaction that inserts a ticket increments the counter `ticket_number`, and its value
-- becomes the number of the ticket.
CREATE TABLE counters (
    store_id {text} NOT NULL REFERENCES stores (id),
    name {text} NOT NULL,
    value BIGINT NOT NULL,
    PRIMARY KEY (store_id, name)
) {clustered};

-- The transactional outbox: an event is inserted in the transaction of the change that it reports. The event has no sequence number then.
-- Readers number the committed events. If writers numbered them, the writers of a store would have to wait for each other.
-- No foreign key to `stores`: its check would make the writers of a store contend for the store's row, which each of them has just read.
CREATE TABLE events (
    position {serial},
    store_id {text} NOT NULL,
    id {text} NOT NULL,
    sequence BIGINT,
    type {text} NOT NULL,
    -- The channel account of the event, if it has one.
    account_id {text},
    occurred_at BIGINT NOT NULL,
    body {bytes} NOT NULL
);
CREATE UNIQUE INDEX events_by_id ON events (store_id, id);
-- Partial index: an event without a number is not in the index, so inserting an event does not write to the index.
CREATE UNIQUE INDEX events_by_sequence ON events (store_id, sequence) WHERE sequence IS NOT NULL;
CREATE INDEX events_to_number ON events (position) WHERE sequence IS NULL;

-- The log of changed searchable records, in order, from which the search index is updated. On PostgreSQL, a transaction that changed no
-- searchable record writes one row, too. If a standby has this row, the standby has replayed the transaction.
-- No foreign key to `stores`: it would cost a look-up per row of an import, for a log that can be rebuilt.
CREATE TABLE changes (
    position {serial},
    store_id {text} NOT NULL,
    kind TEXT NOT NULL,
    -- One id, or several of an import, one per line.
    record_ids {text} NOT NULL,
    changed_at BIGINT NOT NULL,
    -- PostgreSQL: the id of the writing transaction, by which readers find new rows. The position alone is not sufficient: it is assigned
    -- before the commit, so a row may become visible after a row with a higher position. 0 on SQLite, whose single writer commits rows in
    -- the order of their positions.
    transaction_id BIGINT NOT NULL
);
-- Both indexes are empty on SQLite, where readers find changes by their position.
CREATE INDEX changes_by_transaction ON changes (transaction_id, position) WHERE transaction_id > 0;
CREATE INDEX changes_by_store ON changes (store_id, transaction_id) WHERE transaction_id > 0;

-- One row: the greatest transaction id (on SQLite: position) whose rows have been deleted from `changes`.
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

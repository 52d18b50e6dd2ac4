//! Tables of a store's records (sections 2.2 to 2.12 of the API contract), with derived columns for reads. A folded text is the text
//! without differences of case and Unicode form (`domain::unicode_text::fold`).

crate::migration!(
    "m0001_records",
    tables: [
        "stores", "roles", "users", "teams", "team_members", "accounts", "account_users", "templates", "labels",
        "contact_fields", "ticket_fields", "contacts", "conversations", "conversation_labels", "tickets",
        "ticket_field_values", "messages", "comments",
    ],
    r#"
CREATE TABLE stores (
    id {text} PRIMARY KEY,
    name TEXT NOT NULL,
    currency TEXT NOT NULL,
    -- Hours after closing within which an inbound message reopens a ticket: 0 never, -1 always.
    reopen_window_hours BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE roles (
    store_id {text} NOT NULL REFERENCES stores (id),
    id {text} NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    PRIMARY KEY (store_id, id)
);

CREATE TABLE users (
    store_id {text} NOT NULL REFERENCES stores (id),
    id {text} NOT NULL,
    -- NULL: the row is an invitation that the user has not accepted yet.
    user_id {text},
    name TEXT,
    email TEXT,
    role_id {text},
    created_at BIGINT NOT NULL,
    PRIMARY KEY (store_id, id)
);
CREATE UNIQUE INDEX users_by_user_id ON users (store_id, user_id);
CREATE INDEX users_by_age ON users (store_id, created_at, id);

CREATE TABLE teams (
    store_id {text} NOT NULL REFERENCES stores (id),
    id {text} NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (store_id, id)
);
CREATE INDEX teams_by_age ON teams (store_id, created_at, id);

CREATE TABLE team_members (
    store_id {text} NOT NULL,
    team_id {text} NOT NULL,
    position BIGINT NOT NULL,
    user_id {text} NOT NULL,
    PRIMARY KEY (store_id, team_id, position),
    FOREIGN KEY (store_id, team_id) REFERENCES teams (store_id, id) DEFERRABLE INITIALLY DEFERRED
) {clustered};
CREATE INDEX team_members_by_user ON team_members (store_id, user_id, team_id);

CREATE TABLE accounts (
    store_id {text} NOT NULL REFERENCES stores (id),
    id {text} NOT NULL,
    channel TEXT NOT NULL,
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    last_authorized_at BIGINT,
    metadata TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (store_id, id)
);
CREATE INDEX accounts_by_age ON accounts (store_id, created_at, id);

-- An account without a row here is open to every user of the store.
CREATE TABLE account_users (
    store_id {text} NOT NULL,
    account_id {text} NOT NULL,
    user_id {text} NOT NULL,
    PRIMARY KEY (store_id, account_id, user_id),
    FOREIGN KEY (store_id, account_id) REFERENCES accounts (store_id, id) DEFERRABLE INITIALLY DEFERRED
) {clustered};
CREATE INDEX account_users_by_user ON account_users (store_id, user_id, account_id);

CREATE TABLE templates (
    store_id {text} NOT NULL,
    id {text} NOT NULL,
    account_id {text} NOT NULL,
    name {text} NOT NULL,
    parameter_format TEXT NOT NULL,
    language TEXT NOT NULL,
    status TEXT NOT NULL,
    category TEXT NOT NULL,
    components TEXT NOT NULL,
    -- Name and body texts, folded, for the `search` parameter.
    search_text TEXT NOT NULL,
    PRIMARY KEY (store_id, id),
    FOREIGN KEY (store_id, account_id) REFERENCES accounts (store_id, id) DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX templates_by_account ON templates (store_id, account_id, name, id);

CREATE TABLE labels (
    store_id {text} NOT NULL REFERENCES stores (id),
    id {text} NOT NULL,
    label TEXT NOT NULL,
    folded TEXT NOT NULL,
    color TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (store_id, id)
);
CREATE INDEX labels_by_update ON labels (store_id, updated_at, id);

CREATE TABLE contact_fields (
    store_id {text} NOT NULL REFERENCES stores (id),
    id {text} NOT NULL,
    name TEXT NOT NULL,
    display_type TEXT NOT NULL,
    data_type TEXT NOT NULL,
    sort_order BIGINT NOT NULL,
    active BOOLEAN NOT NULL,
    description TEXT,
    select_options TEXT,
    regex TEXT,
    max_items BIGINT,
    PRIMARY KEY (store_id, id)
);

CREATE TABLE ticket_fields (
    store_id {text} NOT NULL REFERENCES stores (id),
    id {text} NOT NULL,
    name TEXT NOT NULL,
    display_type TEXT NOT NULL,
    data_type TEXT NOT NULL,
    sort_order BIGINT NOT NULL,
    is_required BOOLEAN NOT NULL,
    active BOOLEAN NOT NULL,
    description TEXT,
    select_options TEXT,
    regex TEXT,
    show_conditions TEXT,
    max_items BIGINT,
    account_ids TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (store_id, id)
);

CREATE TABLE contacts (
    store_id {text} NOT NULL REFERENCES stores (id),
    id {text} NOT NULL,
    full_name TEXT NOT NULL,
    first_name TEXT NOT NULL,
    last_name TEXT,
    email TEXT,
    -- The primary e-mail in lower case: it is unique.
    email_key {text},
    phone {text},
    secondary_phones TEXT,
    secondary_emails TEXT,
    addresses TEXT,
    note TEXT,
    custom_fields TEXT,
    custom_fields_updated_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (store_id, id)
);
CREATE UNIQUE INDEX contacts_by_email ON contacts (store_id, email_key);
CREATE UNIQUE INDEX contacts_by_phone ON contacts (store_id, phone);
CREATE INDEX contacts_by_update ON contacts (store_id, updated_at, id);

CREATE TABLE conversations (
    store_id {text} NOT NULL,
    id {text} NOT NULL,
    channel TEXT NOT NULL,
    account_id {text} NOT NULL,
    contact_id {text} NOT NULL,
    display_name TEXT NOT NULL,
    reference_id {text} NOT NULL,
    label_ids TEXT NOT NULL,
    is_spam BOOLEAN NOT NULL,
    unread_count BIGINT NOT NULL,
    message_count BIGINT NOT NULL,
    email_subject TEXT,
    -- Bloom filter: two bits per label, several labels per bit (src/store/tickets/bloom_filters.rs).
    label_marks BIGINT NOT NULL,
    last_inbound_at BIGINT,
    last_message_at BIGINT,
    last_message_snippet TEXT,
    last_message_inbound BOOLEAN,
    -- Sort key of the conversation list: the time of the newest message, or the creation time if there is no message.
    sort_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (store_id, id),
    FOREIGN KEY (store_id, account_id) REFERENCES accounts (store_id, id) DEFERRABLE INITIALLY DEFERRED,
    FOREIGN KEY (store_id, contact_id) REFERENCES contacts (store_id, id) DEFERRABLE INITIALLY DEFERRED
);
CREATE UNIQUE INDEX conversations_by_thread ON conversations (store_id, account_id, reference_id);
CREATE INDEX conversations_by_contact ON conversations (store_id, contact_id, sort_at, id);

CREATE TABLE conversation_labels (
    store_id {text} NOT NULL,
    conversation_id {text} NOT NULL,
    label_id {text} NOT NULL,
    PRIMARY KEY (store_id, conversation_id, label_id),
    FOREIGN KEY (store_id, conversation_id) REFERENCES conversations (store_id, id) DEFERRABLE INITIALLY DEFERRED
) {clustered};
CREATE INDEX conversation_labels_by_label ON conversation_labels (store_id, label_id, conversation_id);

CREATE TABLE tickets (
    store_id {text} NOT NULL,
    id {text} NOT NULL,
    ticket_number {text} NOT NULL,
    is_open BOOLEAN NOT NULL,
    is_spam BOOLEAN NOT NULL,
    is_follow_up BOOLEAN NOT NULL,
    channel TEXT NOT NULL,
    contact_id {text} NOT NULL,
    account_id {text} NOT NULL,
    conversation_id {text} NOT NULL,
    opened_at BIGINT NOT NULL,
    closed_at BIGINT,
    reopened_at BIGINT,
    snoozed_until BIGINT,
    assignee_user_id {text},
    handled_by {text},
    resolution_status TEXT,
    -- A JSON object, as the API returns it: the values of all fields, and those of system keys such as `isConverted`.
    ticket_fields TEXT NOT NULL,
    ticket_fields_updated_at BIGINT,
    -- Three Bloom filters: of the conversation's labels, of the field values, and of the characters in their texts.
    label_marks BIGINT NOT NULL,
    field_marks BIGINT NOT NULL,
    text_marks BIGINT NOT NULL,
    -- Sort key of the ticket list: the time of the newest customer-facing message in the ticket's time window, or else opened_at.
    sort_at BIGINT NOT NULL,
    -- The time of the first inbound message in the ticket's time window that no agent has answered yet.
    waiting_since BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (store_id, id),
    FOREIGN KEY (store_id, conversation_id) REFERENCES conversations (store_id, id) DEFERRABLE INITIALLY DEFERRED
);
CREATE UNIQUE INDEX tickets_by_number ON tickets (store_id, ticket_number);
CREATE UNIQUE INDEX tickets_one_open ON tickets (store_id, conversation_id) WHERE is_open = TRUE;
-- Of two equally good indexes, SQLite chooses by the order of their creation. A large import drops the indexes that are not unique, and
-- builds this one first. Therefore it is also the first of them here.
CREATE INDEX tickets_by_conversation ON tickets (store_id, conversation_id, opened_at, id);
CREATE INDEX tickets_by_state ON tickets (store_id, is_open, is_spam, sort_at, id{marks});
CREATE INDEX tickets_by_message ON tickets (store_id, is_spam, sort_at, id{marks});
CREATE INDEX tickets_by_assignee ON tickets (store_id, assignee_user_id, sort_at, id);

-- One row per value of a ticket's fields, so that a filter is an index look-up.
CREATE TABLE ticket_field_values (
    store_id {text} NOT NULL,
    ticket_id {text} NOT NULL,
    field_id {text} NOT NULL,
    position BIGINT NOT NULL,
    -- One of the two columns has a value: text (booleans as `true` and `false`) or number (dates as Unix milliseconds).
    text_value {text},
    number_value DOUBLE PRECISION,
    -- The text, folded, for starts_with and text_contains.
    folded {text},
    PRIMARY KEY (store_id, ticket_id, field_id, position),
    FOREIGN KEY (store_id, ticket_id) REFERENCES tickets (store_id, id) DEFERRABLE INITIALLY DEFERRED
) {clustered};
-- Only prefixes of texts: PostgreSQL refuses an index row that is larger than 2.7 kB.
CREATE INDEX ticket_field_values_by_text ON ticket_field_values (store_id, field_id, substr(text_value, 1, 200), ticket_id);
CREATE INDEX ticket_field_values_by_number ON ticket_field_values (store_id, field_id, number_value, ticket_id);
CREATE INDEX ticket_field_values_by_fold ON ticket_field_values (store_id, field_id, substr(folded, 1, 200), ticket_id);

CREATE TABLE messages (
    store_id {text} NOT NULL,
    id {text} NOT NULL,
    conversation_id {text} NOT NULL,
    account_id {text} NOT NULL,
    inbound BOOLEAN NOT NULL,
    sent_at BIGINT NOT NULL,
    text TEXT,
    images TEXT,
    kind TEXT,
    author_user_id {text},
    is_sent_from_app BOOLEAN,
    sender TEXT,
    payload TEXT,
    -- The channel's id of the message, by which repeated deliveries are detected.
    external_id {text},
    -- For outbound messages: `pending`, `sent` or `failed`, and the reason of a failure.
    delivery TEXT,
    failure TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (store_id, id),
    FOREIGN KEY (store_id, conversation_id) REFERENCES conversations (store_id, id) DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX messages_by_conversation ON messages (store_id, conversation_id, sent_at, id);
CREATE UNIQUE INDEX messages_by_external_id ON messages (store_id, account_id, external_id)
    WHERE external_id IS NOT NULL;

CREATE TABLE comments (
    store_id {text} NOT NULL,
    id {text} NOT NULL,
    conversation_id {text} NOT NULL,
    text TEXT NOT NULL,
    created_by {text} NOT NULL,
    sent_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (store_id, id),
    FOREIGN KEY (store_id, conversation_id) REFERENCES conversations (store_id, id) DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX comments_by_conversation ON comments (store_id, conversation_id, sent_at, id)
"#
);

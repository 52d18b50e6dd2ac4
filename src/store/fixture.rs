//! Test fixture: a database with one store, and functions that insert records. The database is a fresh SQLite file, or the PostgreSQL
//! database that `COUNTERPART_TEST_POSTGRES` names, in which each test has its own store.

use std::sync::{
    Arc,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

use sea_orm::{ActiveModelBehavior, ActiveModelTrait, ActiveValue::NotSet, ConnectionTrait, DbBackend, EntityTrait, IntoActiveModel};

use serde_json::json;

use super::entity::*;
use crate::{
    domain::{
        api_keys::SecretHash,
        custom_fields::Comparable,
        ids::{ConversationId, KeyId, StoreId},
        messages::Message,
        ndjson_records::Line,
        paging::PageRequest,
        time::Timestamp,
        unicode_text::fold,
    },
    store::{
        Db,
        db::OnStatement,
        import::{Batch, derive_tickets},
        parameterised_sql::{Param, Sql},
        tickets::bloom_filters::{BloomBits, FieldBloomBits},
    },
};

pub(crate) struct Fixture {
    pub db: Db,
    pub url: String,
    pub store: StoreId,
    /// The URL of the PostgreSQL server and the name of the database that was created for this fixture alone. The database is dropped with
    /// the fixture.
    own: Option<(String, String)>,
    _dir: tempfile::TempDir,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if let Some((server, name)) = &self.own {
            let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
            _ = std::process::Command::new("psql").args(["--no-psqlrc", "--quiet", "--command", &drop, server]).status();
        }
    }
}

/// Reads an environment variable that configures the test suite.
#[expect(clippy::disallowed_methods, reason = "the suite's own settings, not the program's")]
pub(crate) fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns a counter, and a callback that increments the counter. A [`Db`] that is opened with the callback counts its statements.
pub(crate) fn counter() -> (Arc<AtomicU64>, OnStatement) {
    let counted = Arc::new(AtomicU64::new(0));
    let count = counted.clone();
    (counted, Arc::new(move || _ = count.fetch_add(1, Ordering::Relaxed)))
}

/// Builds an outbound message without storing it.
pub(crate) fn sent(id: &str, conversation: &str, text: &str) -> Message {
    let at = Timestamp::from_millis(1);
    Message {
        id: id.into(),
        conversation_id: conversation.into(),
        account_id: "a1".into(),
        inbound: false,
        sent_at: at,
        sort_at: at,
        text: Some(text.to_owned()),
        images: None,
        kind: None,
        author_user_id: None,
        is_sent_from_app: Some(true),
        sender: None,
        payload: None,
        created_at: at,
        updated_at: at,
    }
}

fn postgres() -> Option<String> {
    setting("COUNTERPART_TEST_POSTGRES")
}

impl Fixture {
    /// Creates a store with one account, one contact and the conversation `c0`.
    pub async fn new() -> Self {
        Self::open(None).await
    }

    /// Creates the same store as [`Fixture::new`]. Its `db` calls `on_statement` for each statement.
    pub async fn open(on_statement: Option<OnStatement>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let url = postgres().unwrap_or_else(|| format!("sqlite://{}", dir.path().join("test.db").display()));
        Self::at(url, dir, None, on_statement).await
    }

    /// Creates the same store as [`Fixture::new`], in a database that no other test uses. For tests of functions that read the records of
    /// all stores.
    pub async fn alone() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let Some(server) = postgres() else { return Self::new().await };
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("fixture_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let admin = Db::open(&server, 1, None).await.unwrap();
        admin.connect().await.unwrap().execute_unprepared(&format!("CREATE DATABASE {name}")).await.unwrap();
        admin.close().await.unwrap();
        let (base, _) = server.rsplit_once('/').unwrap();
        Self::at(format!("{base}/{name}"), dir, Some((server, name)), None).await
    }

    async fn at(url: String, dir: tempfile::TempDir, own: Option<(String, String)>, on_statement: Option<OnStatement>) -> Self {
        let db = Db::open(&url, 2, on_statement).await.unwrap();
        db.migrate_up().await.unwrap();
        let name = dir.path().file_name().unwrap().to_string_lossy().into_owned();
        let fixture = Self { db, url, store: StoreId::from(name), own, _dir: dir };
        let id = fixture.id();
        fixture
            .put(stores::Model { id: id.clone(), name: "Shop".into(), currency: "THB".into(), reopen_window_hours: 24, created_at: 0 })
            .await;
        fixture.account("a1", "line").await;
        fixture.contact("k1", 0).await;
        fixture.conversation("c0", |_| {}).await;
        fixture
    }

    /// Reverts a migration and all later ones, and applies them again.
    pub async fn migrate_again(&self, name: &str) {
        self.migrate_back(name).await;
        self.db.migrate_up().await.unwrap();
    }

    /// Reverts a migration and all later ones.
    pub async fn migrate_back(&self, name: &str) {
        let all = self.db.migrations().await.unwrap();
        let at = all.iter().position(|(other, _)| other == name).unwrap();
        self.db.migrate_down((all.len() - at) as u32).await.unwrap();
    }

    /// Runs SQL without bound values, in a transaction.
    pub async fn execute(&self, statement: &str) -> Result<(), crate::store::Error> {
        let tx = self.db.begin().await?;
        tx.script(statement).await?;
        tx.commit().await
    }

    pub async fn put<A, M>(&self, model: M)
    where
        A: ActiveModelTrait + ActiveModelBehavior + Send,
        M: IntoActiveModel<A>,
    {
        let tx = self.db.begin().await.unwrap();
        tx.execute(&A::Entity::insert(model.into_active_model())).await.unwrap();
        tx.commit().await.unwrap();
    }

    fn id(&self) -> String {
        self.store.as_str().to_owned()
    }

    /// Inserts an API key with one secret. The secret expires one second later than the key.
    pub async fn key(&self, name: &str, active: bool, expires_at: i64) -> (KeyId, SecretHash) {
        let id = KeyId::from(format!("{name} of {}", self.store));
        let hash = SecretHash::of(id.as_str());
        self.put(api_keys::Model {
            store_id: self.id(),
            id: id.to_string(),
            name: "key".into(),
            scopes: "tickets:read".into(),
            active,
            owner_user_id: None,
            created_at: 0,
            updated_at: 0,
            expires_at,
            last_used_at: None,
        })
        .await;
        self.put(api_key_secrets::Model {
            hash: hash.as_str().into(),
            store_id: self.id(),
            key_id: id.to_string(),
            last_four: "four".into(),
            created_at: 0,
            expires_at: expires_at + 1000,
        })
        .await;
        (id, hash)
    }

    pub async fn account(&self, id: &str, channel: &str) {
        self.put(accounts::Model {
            store_id: self.id(),
            id: id.into(),
            channel: channel.into(),
            name: format!("Account {id}"),
            status: "healthy".into(),
            last_authorized_at: None,
            metadata: None,
            created_at: 0,
            updated_at: 0,
        })
        .await;
    }

    /// Imports contacts whose ids are their names.
    pub async fn import_contacts(&self, names: &[String]) {
        let contact = |name: &String| {
            let at = "2026-01-01T00:00:00.000Z";
            let record = json!({"id": name, "fullName": name, "firstName": name, "createdAt": at, "updatedAt": at});
            Line { number: 1, record: serde_json::from_value(record).unwrap() }
        };
        let mut import = self.db.begin_import(&self.store, Timestamp::from_millis(1)).await.unwrap().unwrap();
        import.put(Batch { contacts: names.iter().map(contact).collect(), ..Batch::default() }).await.unwrap();
        import.commit(&self.db).await.unwrap();
    }

    pub async fn contact(&self, id: &str, updated_at: i64) {
        let row = contacts::Model {
            store_id: self.id(),
            id: id.into(),
            full_name: "Ann Łuk".into(),
            first_name: "Ann".into(),
            last_name: Some("Łuk".into()),
            email: None,
            email_key: None,
            phone: None,
            secondary_phones: Some(r#"["+661"]"#.into()),
            secondary_emails: None,
            addresses: None,
            note: None,
            custom_fields: None,
            custom_fields_updated_at: None,
            created_at: 0,
            updated_at,
            placed_by: 0,
        };
        self.put(contacts::ActiveModel { placed_by: NotSet, ..row.into() }).await;
    }

    pub async fn conversation(&self, id: &str, change: impl FnOnce(&mut conversations::Model)) {
        let mut row = conversations::Model {
            store_id: self.id(),
            id: id.into(),
            channel: "line".into(),
            account_id: "a1".into(),
            contact_id: "k1".into(),
            display_name: format!("Conversation {id}"),
            reference_id: id.into(),
            label_ids: "[]".into(),
            is_spam: false,
            unread_count: 0,
            message_count: 0,
            email_subject: None,
            label_marks: 0,
            last_inbound_at: None,
            last_message_at: None,
            last_message_snippet: None,
            last_message_inbound: None,
            sort_at: 0,
            created_at: 0,
            updated_at: 0,
            placed_by: 0,
        };
        change(&mut row);
        self.put(conversations::ActiveModel { placed_by: NotSet, ..row.into() }).await;
    }

    pub async fn label(&self, conversation: &str, label: &str) {
        let row = conversation_labels::Model { store_id: self.id(), conversation_id: conversation.into(), label_id: label.into() };
        self.put(row).await;
        let (marks, store) = (BloomBits::of_labels([&label.into()]).bits(), &self.store);
        for (table, column) in [("conversations", "id"), ("tickets", "conversation_id")] {
            let set = format!(
                "UPDATE {table} SET label_marks = label_marks | {marks} WHERE store_id = '{store}' AND {column} = '{conversation}'"
            );
            self.execute(&set).await.unwrap();
        }
    }

    /// Inserts a ticket, which is open unless `change` closes it. Also inserts the ticket's conversation, whose id is `c` followed by the
    /// ticket's id, unless `change` sets another conversation.
    pub async fn ticket(&self, id: &str, change: impl FnOnce(&mut tickets::Model)) {
        let mut row = tickets::Model {
            store_id: self.id(),
            id: id.into(),
            ticket_number: id.into(),
            is_open: true,
            is_spam: false,
            is_follow_up: false,
            channel: "line".into(),
            contact_id: "k1".into(),
            account_id: "a1".into(),
            conversation_id: format!("c{id}"),
            opened_at: 0,
            closed_at: None,
            reopened_at: None,
            snoozed_until: None,
            assignee_user_id: None,
            handled_by: None,
            resolution_status: None,
            ticket_fields: "{}".into(),
            ticket_fields_updated_at: None,
            label_marks: 0,
            field_marks: 0,
            text_marks: 0,
            sort_at: 0,
            waiting_since: None,
            created_at: 0,
            updated_at: 0,
            placed_by: 0,
        };
        change(&mut row);
        if row.conversation_id == format!("c{id}") {
            self.conversation(&row.conversation_id, |_| {}).await;
        }
        let (store, conversation) = (self.store.clone(), row.conversation_id.clone());
        self.put(tickets::ActiveModel { placed_by: NotSet, ..row.into() }).await;
        let marks = format!("(SELECT label_marks FROM conversations WHERE store_id = '{store}' AND id = '{conversation}')");
        self.execute(&format!("UPDATE tickets SET label_marks = {marks} WHERE store_id = '{store}' AND id = '{id}'")).await.unwrap();
    }

    pub async fn values(&self, ticket: &str, field: &str, values: impl IntoIterator<Item = Comparable>) {
        let values: Vec<Comparable> = values.into_iter().collect();
        let FieldBloomBits { field_marks, text_marks } = FieldBloomBits::of(&field.into(), &values);
        let (fields, texts, store) = (field_marks.bits(), text_marks.bits(), &self.store);
        let set = format!("field_marks = field_marks | {fields}, text_marks = text_marks | {texts}");
        self.execute(&format!("UPDATE tickets SET {set} WHERE store_id = '{store}' AND id = '{ticket}'")).await.unwrap();
        for (position, value) in values.into_iter().enumerate() {
            let folded = value.folded();
            let (text_value, number_value) = match value {
                Comparable::Text(text) => (Some(text), None),
                Comparable::Number(number) => (None, Some(number)),
            };
            self.put(ticket_field_values::Model {
                store_id: self.id(),
                ticket_id: ticket.into(),
                field_id: field.into(),
                position: position as i64,
                text_value,
                number_value,
                folded,
            })
            .await;
        }
    }

    pub async fn field(&self, id: &str, display_type: &str, data_type: &str) {
        self.put(ticket_field_definitions::Model {
            store_id: self.id(),
            id: id.into(),
            name: id.into(),
            display_type: display_type.into(),
            data_type: data_type.into(),
            sort_order: 0,
            is_required: false,
            active: true,
            description: None,
            select_options: None,
            regex: None,
            show_conditions: None,
            max_items: None,
            account_ids: Some(r#"["a1","gone"]"#.into()),
            created_at: 0,
            updated_at: 0,
        })
        .await;
    }

    pub async fn message(&self, id: &str, conversation: &str, sent_at: i64, change: impl FnOnce(&mut messages::Model)) {
        let mut row = messages::Model {
            store_id: self.id(),
            id: id.into(),
            conversation_id: conversation.into(),
            account_id: "a1".into(),
            inbound: true,
            sent_at,
            channel_sent_at: None,
            text: Some("hello".into()),
            images: None,
            kind: None,
            author_user_id: None,
            is_sent_from_app: None,
            sender: None,
            payload: None,
            external_id: None,
            delivery: None,
            failure: None,
            created_at: sent_at,
            updated_at: sent_at,
        };
        change(&mut row);
        self.put(row).await;
    }

    pub async fn user(&self, id: &str, user_id: Option<&str>, name: Option<&str>, created_at: i64) {
        self.put(users::Model {
            store_id: self.id(),
            id: id.into(),
            user_id: user_id.map(Into::into),
            name: name.map(Into::into),
            email: None,
            role_id: Some("r1".into()),
            created_at,
        })
        .await;
    }

    pub async fn role(&self, id: &str, name: &str) {
        self.put(roles::Model { store_id: self.id(), id: id.into(), name: name.into(), kind: "agent".into() }).await;
    }

    pub async fn team(&self, id: &str, members: &[&str]) {
        let row = teams::Model { store_id: self.id(), id: id.into(), name: id.into(), description: None, created_at: 0 };
        self.put(row).await;
        for (position, user) in members.iter().enumerate() {
            let (position, user_id) = (position as i64, (*user).to_owned());
            self.put(team_members::Model { store_id: self.id(), team_id: id.into(), position, user_id }).await;
        }
    }

    pub async fn named_label(&self, id: &str, label: &str, updated_at: i64) {
        self.put(labels::Model {
            store_id: self.id(),
            id: id.into(),
            label: label.into(),
            folded: fold(label),
            color: "#ffffff".into(),
            created_at: 0,
            updated_at,
        })
        .await;
    }

    pub async fn template(&self, id: &str, account: &str, text: &str) {
        self.put(templates::Model {
            store_id: self.id(),
            id: id.into(),
            account_id: account.into(),
            name: text.into(),
            parameter_format: "POSITIONAL".into(),
            language: "en".into(),
            status: "APPROVED".into(),
            category: "UTILITY".into(),
            components: "[]".into(),
            search_text: fold(text),
        })
        .await;
    }

    pub fn is_sqlite(&self) -> bool {
        self.db.backend() == DbBackend::Sqlite
    }

    /// Asserts that the counters, the tickets and the outbox entries of a conversation agree with its messages. Returns the number of
    /// messages.
    pub async fn assert_conversation_is_consistent(&self, conversation: &ConversationId) -> i64 {
        let sql = |text: &str| Sql::of(&self.store, text).with(Param::Text(conversation.to_string()));
        let counted = sql(
            "SELECT c.message_count, COUNT(*), c.sort_at, MAX(m.sent_at) FROM conversations c JOIN messages m ON m.store_id = c.store_id \
             AND m.conversation_id = c.id WHERE c.store_id = $1 AND c.id = $2 GROUP BY c.store_id, c.id, c.message_count, c.sort_at",
        );
        let counted = self.db.first(counted, |cells| Ok([cells.take()?, cells.take()?, cells.take::<i64>()?, cells.take()?]));
        let [counters, rows, sort_at, newest] = counted.await.unwrap().unwrap();
        assert_eq!((counters, sort_at), (rows, newest));
        let tickets = async || {
            let sql = sql("SELECT id, sort_at, waiting_since FROM tickets WHERE store_id = $1 AND conversation_id = $2 ORDER BY id");
            self.db.all(sql, |cells| Ok((cells.take::<String>()?, cells.take::<i64>()?, cells.take::<Option<i64>>()?))).await.unwrap()
        };
        let got = tickets().await;
        self.execute(&format!("{} WHERE store_id = '{}'", derive_tickets("tickets.store_id"), self.store)).await.unwrap();
        assert_eq!(got, tickets().await);
        // Counts outbox entries that are queued after an entry with a newer message. Uses a window function: without statistics PostgreSQL
        // would take minutes for a self-join of outbox entries.
        let overtaken = sql("SELECT COUNT(*) FROM (SELECT m.sent_at, MAX(m.sent_at) OVER (ORDER BY o.position \
             ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS latest_before FROM outbound o \
             JOIN messages m ON m.store_id = o.store_id AND m.id = o.message_id WHERE o.store_id = $1 AND o.conversation_id = $2) parcels \
             WHERE latest_before > sent_at");
        assert_eq!(self.db.first(overtaken, |cells| cells.take::<i64>()).await.unwrap(), Some(0), "parcels overtake each other");
        rows
    }

    /// Returns the number of rows of this store in a table.
    pub async fn rows_of(&self, table: &str) -> i64 {
        let count = Sql::of(&self.store, &format!("SELECT COUNT(*) FROM {table} WHERE store_id = $1"));
        self.db.first(count, |cells| cells.take()).await.unwrap().unwrap_or_default()
    }

    pub async fn comment(&self, id: &str, conversation: &str, sent_at: i64, created_by: &str) {
        self.put(internal_comments::Model {
            store_id: self.id(),
            id: id.into(),
            conversation_id: conversation.into(),
            text: "note".into(),
            created_by: created_by.into(),
            sent_at,
            created_at: sent_at,
            updated_at: sent_at,
        })
        .await;
    }
}

/// Returns a request for the first page of `size` rows, with the total.
pub(crate) fn first(size: u32) -> PageRequest {
    PageRequest { size, after: None, count: true }
}

/// Runs a statement on a SQLite file through a separate connection, as another program would.
pub fn damage(file: &std::path::Path, statement: &str) {
    rusqlite::Connection::open(file).unwrap().execute(statement, []).unwrap();
}

//! Tests of inbound messages with the built binary (`message receive`): always on SQLite, and on PostgreSQL if `COUNTERPART_TEST_POSTGRES`
//! names a server on which databases may be created.

mod input_normalisation;

use std::{
    io::Write,
    process::{Child, Command, Output, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::{Value, json};
use tempfile::TempDir;

struct World {
    folder: TempDir,
    url: String,
}

/// Runs a test on a SQLite database, and on a PostgreSQL database if one is available. The database has a store `s` with a WhatsApp, a LINE
/// and an e-mail account.
fn everywhere(test: impl Fn(&World)) {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("test.db").display());
    World { folder, url }.prepared(&test);
    #[expect(clippy::disallowed_methods, reason = "a test's own switch")]
    let Ok(server) = std::env::var("COUNTERPART_TEST_POSTGRES") else { return };
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("receive_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        use sqlx::{Connection, Executor};
        let mut connection = sqlx::PgConnection::connect(&server).await.unwrap();
        connection.execute(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"))).await.unwrap();
    });
    let (base, _) = server.rsplit_once('/').unwrap();
    World { folder: tempfile::tempdir().unwrap(), url: format!("{base}/{name}") }.prepared(&test);
}

impl World {
    fn prepared(self, test: &impl Fn(&Self)) {
        self.ok(&["store", "create", "--id", "s", "--name", "A store"], "");
        let account =
            |id: &str, channel: &str| json!({"kind": "account", "record": {"id": id, "channel": channel, "name": id, "status": "healthy"}});
        self.import(&[account("wa", "whatsapp"), account("li", "line"), account("gm", "gmail")]);
        test(&self);
    }

    fn start(&self, arguments: &[&str], input: &str) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_counterpart"));
        command.args(arguments).env("DATABASE_URL", &self.url).current_dir(self.folder.path());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child
    }

    fn run(&self, arguments: &[&str], input: &str) -> Output {
        self.start(arguments, input).wait_with_output().unwrap()
    }

    /// Runs a command that must succeed; returns its output.
    fn ok(&self, arguments: &[&str], input: &str) -> String {
        let output = self.run(arguments, input);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn import(&self, records: &[Value]) {
        let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
        self.ok(&["import", "--store", "s", "-"], &lines);
    }

    /// Imports records, and asserts that the import fails. Returns the error message.
    fn import_refused(&self, records: &[Value]) -> String {
        let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
        let output = self.run(&["import", "--store", "s", "-"], &lines);
        assert!(!output.status.success(), "the import succeeded");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Passes messages to the command `message receive`. Returns its responses, one for each message.
    fn receive(&self, messages: &[Value]) -> Vec<Value> {
        let lines: String = messages.iter().map(|message| format!("{message}\n")).collect();
        parsed(&self.ok(&["message", "receive", "--store", "s"], &lines))
    }

    fn one(&self, message: Value) -> Value {
        self.receive(&[message]).remove(0)
    }

    fn events(&self) -> Vec<Value> {
        parsed(&self.ok(&["events", "--store", "s"], ""))
    }

    /// Exports the store. Returns the records of this kind.
    fn records(&self, kind: &str) -> Vec<Value> {
        let export = parsed(&self.ok(&["export", "--store", "s"], ""));
        export.into_iter().filter(|line| line["kind"] == kind).map(|line| line["record"].clone()).collect()
    }

    /// Returns derived columns of the store's only conversation and only ticket, separated by spaces: counts, times and the text of the
    /// newest message. An export does not contain these columns.
    fn derived(&self) -> String {
        use sqlx::Connection;
        const SQL: &str = "SELECT c.message_count || ' ' || c.last_inbound_at || ' ' || c.last_message_at || ' ' || c.last_message_snippet \
             || ' ' || c.sort_at || ' ' || t.sort_at || ' ' || t.waiting_since FROM conversations c JOIN tickets t ON t.conversation_id = c.id";
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            if self.url.starts_with("sqlite:") {
                let mut connection = sqlx::SqliteConnection::connect(&self.url).await.unwrap();
                sqlx::query_scalar::<_, String>(SQL).fetch_one(&mut connection).await.unwrap()
            } else {
                let mut connection = sqlx::PgConnection::connect(&self.url).await.unwrap();
                sqlx::query_scalar::<_, String>(SQL).fetch_one(&mut connection).await.unwrap()
            }
        })
    }

    /// Runs a statement directly on the database.
    fn sql(&self, statement: &str) {
        use sqlx::{Connection, Executor};
        let statement = sqlx::AssertSqlSafe(statement.to_owned());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            if self.url.starts_with("sqlite:") {
                sqlx::SqliteConnection::connect(&self.url).await.unwrap().execute(statement).await.unwrap();
            } else {
                sqlx::PgConnection::connect(&self.url).await.unwrap().execute(statement).await.unwrap();
            }
        });
    }

    /// Returns the tickets in the order of their sort times, latest first. Each ticket is given as its id and the day of the month of its
    /// sort time, such as `k3 20`.
    fn order(&self) -> Vec<String> {
        use sqlx::Connection;
        const SQL: &str = "SELECT id, sort_at FROM tickets ORDER BY sort_at DESC";
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let rows: Vec<(String, i64)> = runtime.block_on(async {
            if self.url.starts_with("sqlite:") {
                let mut connection = sqlx::SqliteConnection::connect(&self.url).await.unwrap();
                sqlx::query_as(SQL).fetch_all(&mut connection).await.unwrap()
            } else {
                let mut connection = sqlx::PgConnection::connect(&self.url).await.unwrap();
                sqlx::query_as(SQL).fetch_all(&mut connection).await.unwrap()
            }
        });
        rows.into_iter().map(|(id, at)| format!("{id} {}", chrono::DateTime::from_timestamp_millis(at).unwrap().format("%-d"))).collect()
    }

    /// Returns the record with this id.
    fn record(&self, kind: &str, id: &Value) -> Value {
        self.records(kind).into_iter().find(|record| record["id"] == *id).unwrap()
    }
}

fn parsed(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_whatsapp_thread_with_another_reference_is_found_by_the_phone_of_its_contact() {
    everywhere(|world| {
        let stamps = json!({"createdAt": "2026-01-01T00:00:00.000Z", "updatedAt": "2026-01-01T00:00:00.000Z"});
        let record = |kind: &str, mut record: Value| {
            record.as_object_mut().unwrap().extend(stamps.as_object().unwrap().clone());
            json!({"kind": kind, "record": record})
        };
        let thread = json!({"id": "v", "channel": "whatsapp", "accountId": "wa", "contactId": "c", "displayName": "Mali",
            "referenceId": "thread-of-another-system", "labelIds": [], "isSpam": false});
        world.import(&[
            record("contact", json!({"id": "c", "fullName": "Mali", "firstName": "Mali", "phone": "+66800000001"})),
            with(record("conversation", thread), json!({"asStored": true})),
        ]);
        let received = world.one(message("wa", "+66800000001", "x1"));
        assert_eq!(received["conversationId"], "v");
        assert_eq!(world.one(message("wa", "thread-of-another-system", "x2"))["conversationId"], "v");
        assert_ne!(world.one(message("wa", "+66800000002", "x3"))["conversationId"], "v");
    });
}

fn message(account: &str, reference: &str, external: &str) -> Value {
    json!({"accountId": account, "referenceId": reference, "externalId": external, "sender": {"id": "u", "name": "Nok"}, "text": "hello"})
}

fn with(mut message: Value, more: Value) -> Value {
    message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    message
}

/// Returns import records: a contact, a LINE conversation of this contact, and the given tickets. The conversation has the `referenceId`
/// `t` and the additional properties `conversation`.
fn known(conversation: Value, tickets: &[Value]) -> Vec<Value> {
    let at = "2026-01-01T00:00:00Z";
    let contact = json!({"id": "c", "fullName": "Mali S", "firstName": "Mali", "email": "Mali@example.com", "phone": "+66800000001", "createdAt": at, "updatedAt": at});
    let thread = json!({"id": "v", "channel": "line", "accountId": "li", "contactId": "c", "displayName": "Mali", "referenceId": "t", "labelIds": [],
        "isSpam": false, "createdAt": at, "updatedAt": at});
    let mut records =
        vec![json!({"kind": "contact", "record": contact}), json!({"kind": "conversation", "record": with(thread, conversation)})];
    records.extend(tickets.iter().map(|ticket| json!({"kind": "ticket", "record": with(json!({"conversationId": "v"}), ticket.clone())})));
    records
}

/// Returns a ticket for [`known`] that was closed this many hours ago.
fn closed(hours: u64) -> Value {
    let ago = |hours: u64| {
        #[expect(clippy::disallowed_methods, reason = "the program that is tested has the machine's clock")]
        let at = chrono::Utc::now() - std::time::Duration::from_secs(hours * 3600);
        at.to_rfc3339()
    };
    json!({"id": "k", "isOpen": false, "openedAt": ago(hours + 50), "closedAt": ago(hours), "assigneeUserId": "00000000-0000-4000-8000-00000000000a"})
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

#[test]
fn a_new_thread_creates_contact_conversation_and_ticket() {
    everywhere(|world| {
        let answer = world.one(with(
            message("wa", "+66811111111", "x1"),
            json!({"sentAt": "2026-03-01T00:00:00Z", "images": ["https://example.com/a.png"], "emailSubject": "no mail"}),
        ));
        assert_eq!((&answer["externalId"], &answer["duplicate"]), (&json!("x1"), &json!(false)));
        let contact = world.records("contact").remove(0);
        assert_eq!(
            (&contact["firstName"], &contact["fullName"], &contact["phone"]),
            (&json!("Nok"), &json!("Nok"), &json!("+66811111111"))
        );
        let conversation = world.record("conversation", &answer["conversationId"]);
        for (name, value) in [
            ("channel", json!("whatsapp")),
            ("contactId", contact["id"].clone()),
            ("displayName", json!("Nok")),
            ("referenceId", json!("+66811111111")),
            ("unreadMsgCnt", json!(1)),
        ] {
            assert_eq!(conversation[name], value, "{name}");
        }
        assert_eq!(conversation.get("emailSubject"), None);
        let stored = world.record("message", &answer["messageId"]);
        for (name, value) in [
            ("direction", json!("inbound")),
            ("sentAt", json!("2026-03-01T00:00:00.000Z")),
            ("text", json!("hello")),
            ("images", json!(["https://example.com/a.png"])),
            ("sender", json!({"id": "u", "name": "Nok", "type": "contact"})),
            ("externalId", json!("x1")),
        ] {
            assert_eq!(stored[name], value, "{name}");
        }
        let ticket = world.record("ticket", &answer["ticketId"]);
        for (name, value) in
            [("ticketNumber", json!("1")), ("isOpen", json!(true)), ("isFollowUp", json!(false)), ("channel", json!("whatsapp"))]
        {
            assert_eq!(ticket[name], value, "{name}");
        }
        assert_ne!(ticket["openedAt"], stored["sentAt"], "a ticket opens at the time of receipt");

        let events = world.events();
        assert_eq!(kinds(&events), ["message.received", "ticket.opened"]);
        let actor = json!({"type": "contact", "id": contact["id"]});
        assert!(events.iter().enumerate().all(|(i, event)| event["sequence"] == i + 1 && event["actor"] == actor), "{events:?}");
        assert_eq!(events[0]["data"]["ticketId"], answer["ticketId"]);
        assert_eq!(events[0]["data"]["conversationId"], answer["conversationId"]);
        assert_eq!(events[1]["data"]["ticket"]["id"], answer["ticketId"]);
        assert_eq!(events[1]["data"]["reopened"], json!(false));

        let mail = world.one(with(message("gm", "pim@example.com", "x2"), json!({"emailSubject": "Order 7", "sender": {"id": "p"}})));
        let conversation = world.record("conversation", &mail["conversationId"]);
        assert_eq!((&conversation["emailSubject"], &conversation["displayName"]), (&json!("Order 7"), &json!("pim")));
        assert_eq!(world.record("contact", &conversation["contactId"])["email"], "pim@example.com");
        assert_eq!(world.record("ticket", &mail["ticketId"])["ticketNumber"], "2");
    });
}

#[test]
fn messages_in_an_existing_thread_keep_its_ticket_and_are_counted() {
    everywhere(|world| {
        let sent = |external: &str, at: &str, text: &str| with(message("li", "t", external), json!({"sentAt": at, "text": text}));
        let answers = world.receive(&[
            sent("x1", "2026-03-01T10:00:00Z", "first"),
            sent("x2", "2026-03-01T12:00:00Z", "  the \n newest "),
            sent("x3", "2026-03-01T11:00:00Z", "late"),
        ]);
        assert!(answers.iter().all(|answer| answer["ticketId"] == answers[0]["ticketId"]), "{answers:?}");
        let before = world.ok(&["export", "--store", "s"], "");
        let again = world.one(sent("x1", "2026-03-02T10:00:00Z", "other"));
        assert_eq!(again, with(answers[0].clone(), json!({"duplicate": true})));
        assert_eq!(world.ok(&["export", "--store", "s"], ""), before, "a repeat changes nothing");
        assert_eq!(kinds(&world.events()), ["message.received", "ticket.opened", "message.received", "message.received"]);

        assert_eq!(world.records("conversation")[0]["unreadMsgCnt"], 3);
        let at = |hour: i64| 1_772_323_200_000 + hour * 3_600_000;
        let derived = world.derived();
        assert_eq!(derived, format!("3 {0} {0} the newest {0} {0} {1}", at(12), at(10)));

        // An import of the exported records computes the same derived columns.
        world.import(&parsed(&before));
        assert_eq!(world.ok(&["export", "--store", "s"], ""), before);
        assert_eq!(world.derived(), derived);
    });
}

#[test]
fn a_new_thread_belongs_to_the_contact_with_the_same_phone_or_email() {
    everywhere(|world| {
        world.import(&known(json!({}), &[]));
        for (message, place) in [
            (message("wa", "+66800000001", "x1"), "the phone of the reference"),
            (message("gm", "MALI@example.com", "x2"), "the address of the reference"),
            (with(message("li", "t2", "x3"), json!({"contact": {"firstName": "X", "email": "mali@Example.com"}})), "the e-mail"),
            (with(message("li", "t3", "x4"), json!({"contact": {"firstName": "X", "phone": "+66800000001"}})), "the phone"),
        ] {
            let answer = world.one(message);
            let conversation = world.record("conversation", &answer["conversationId"]);
            assert_eq!((&conversation["contactId"], &conversation["displayName"]), (&json!("c"), &json!("Mali S")), "{place}");
        }
        let person = json!({"firstName": "Ann", "lastName": "B", "email": "ann@example.com", "phone": "+66800000009"});
        let answer = world.one(with(message("li", "t4", "x5"), json!({"contact": person})));
        let made = world.record("contact", &world.record("conversation", &answer["conversationId"])["contactId"]);
        assert_eq!(made["fullName"], "Ann B");
        assert!(person.as_object().unwrap().iter().all(|(name, value)| made[name] == *value), "{made}");
    });
}

#[test]
fn a_closed_ticket_reopens_within_the_window() {
    for (hours, ago, reopened) in [("24", 23, true), ("24", 25, false), ("0", 0, false), ("-1", 9000, true)] {
        everywhere(|world| {
            world.import(&known(json!({}), &[closed(ago)]));
            world.ok(&["store", "edit", "--id", "s", &format!("--reopen-window-hours={hours}")], "");
            let answer = world.one(message("li", "t", "x1"));
            let ticket = world.record("ticket", &answer["ticketId"]);
            assert_eq!(answer["ticketId"] == "k", reopened, "{hours} {ago}");
            assert_eq!(ticket["isOpen"], true);
            assert_eq!(ticket.get("closedAt"), None);
            assert_eq!(ticket.get("reopenedAt").is_some(), reopened);
            assert_eq!(ticket.get("assigneeUserId").is_some(), reopened, "a reopened ticket keeps its assignee");
            assert_eq!(ticket["isFollowUp"], !reopened);
            assert_eq!(ticket["ticketNumber"], if reopened { "1" } else { "2" });
            let events = world.events();
            assert_eq!(kinds(&events), ["message.received", "ticket.opened"]);
            assert_eq!(events[1]["data"]["reopened"], reopened);
            assert_eq!(world.records("ticket").iter().filter(|ticket| ticket["isOpen"] == true).count(), 1);
        });
    }
}

/// A ticket is sorted by the time of the newest message that belongs to it. The test receives messages with different times, and checks the
/// sort times of three tickets.
#[test]
fn a_message_updates_the_sort_time_of_the_ticket_it_belongs_to() {
    everywhere(|world| {
        let day = |day: u32| format!("2026-01-{day:02}T00:00:00.000Z");
        let former =
            |id: &str, opened: u32, closed: u32| json!({"id": id, "isOpen": false, "openedAt": day(opened), "closedAt": day(closed)});
        let open = json!({"id": "k3", "isOpen": true, "isFollowUp": true, "openedAt": day(20)});
        world.import(&known(json!({}), &[former("k1", 2, 5), former("k2", 10, 15), open]));
        assert_eq!(world.order(), ["k3 20", "k2 10", "k1 2"]);
        for (external, sent, order) in [
            // A message that was sent between the close of one ticket and the opening of the next belongs to the later ticket. The sort
            // time of that ticket is then before its opening.
            ("x1", 8, ["k3 20", "k2 8", "k1 2"]),
            ("x2", 14, ["k3 20", "k2 14", "k1 2"]),
            ("x3", 12, ["k3 20", "k2 14", "k1 2"]),
            ("x4", 5, ["k3 20", "k2 14", "k1 5"]),
            ("x5", 1, ["k3 20", "k2 14", "k1 5"]),
            ("x6", 16, ["k3 16", "k2 14", "k1 5"]),
            ("x7", 25, ["k3 25", "k2 14", "k1 5"]),
        ] {
            world.one(with(message("li", "t", external), json!({"sentAt": day(sent)})));
            assert_eq!(world.order(), order, "{external}");
        }
    });
}

#[test]
fn spam_opens_no_ticket_and_a_message_ends_a_snooze() {
    everywhere(|world| {
        world.import(&known(json!({"isSpam": true}), &[closed(1)]));
        let answer = world.one(message("li", "t", "x1"));
        assert_eq!(answer.get("ticketId"), None);
        assert_eq!(world.one(message("li", "t", "x1")), with(answer, json!({"duplicate": true})));
        assert_eq!(kinds(&world.events()), ["message.received"]);
        assert_eq!(world.records("ticket")[0]["isOpen"], false);

        let snoozed = json!({"id": "k", "isOpen": true, "openedAt": "2026-01-01T00:00:00Z", "snoozedUntil": "2999-01-01T00:00:00Z"});
        world.import(&known(json!({}), &[snoozed]));
        assert!(world.records("ticket")[0].get("snoozedUntil").is_some());
        assert_eq!(world.one(message("li", "t", "x2"))["ticketId"], "k");
        assert_eq!(world.records("ticket")[0].get("snoozedUntil"), None);
    });
}

#[test]
fn message_receive_stops_at_an_invalid_line_and_keeps_earlier_messages() {
    everywhere(|world| {
        let good = message("li", "t", "x1");
        for (bad, said) in [
            (with(message("li", "t", "x2"), json!({"colour": 1})), "line 2: `colour` unknown field `colour`"),
            (with(message("li", "t", "x2"), json!({"sender": {"id": 1}})), "line 2: `sender.id` invalid type: integer"),
            (with(message("li", "t", "x2"), json!({"sentAt": "soon"})), "line 2: `sentAt` must be an RFC 3339"),
            (with(message("li", "t", "x2"), json!({"sentAt": "2026-03-01T10:00:60Z"})), "line 2: `sentAt` must be an RFC 3339"),
            (
                with(message("li", "t", "x2"), json!({"images": ["https://example.com/a.png", " "]})),
                "line 2: `images[1]` must not be blank",
            ),
            (message("wa", "not a phone", "x2"), "line 2: `referenceId` must be a phone number on WhatsApp"),
            (message("wa", "120363041234567890@g.us", "x2"), "line 2: `referenceId` must be a phone number on WhatsApp"),
            (message("nope", "t", "x2"), "line 2: `accountId` `nope` is no account"),
            (message("li", " ", "x2"), "line 2: `referenceId` must have"),
            (json!({"accountId": "li"}), "line 2: missing field `referenceId`"),
            (json!(["li"]), "line 2: invalid type: sequence"),
        ] {
            let output = world.run(&["message", "receive", "--store", "s", "-"], &format!("{good}\n{bad}\n{}\n", message("li", "t", "x3")));
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{stderr}");
            assert!(stderr.contains(said) && stderr.contains("messages accepted before it: 1"), "expected {said:?}, got {stderr}");
            assert_eq!(parsed(&String::from_utf8(output.stdout).unwrap()).len(), 1);
        }
        assert_eq!(world.records("message").len(), 1);
        assert_eq!(world.run(&["message", "receive", "--store", "nowhere"], "").status.code(), Some(1));
    });
}

#[test]
fn eight_concurrent_messages_create_one_thread_and_one_ticket() {
    everywhere(|world| {
        let children: Vec<Child> = (0..8)
            .map(|i| {
                world.start(&["message", "receive", "--store", "s"], &format!("{}\n", message("wa", "+66822222222", &format!("x{i}"))))
            })
            .collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        for (kind, count) in [("contact", 1), ("conversation", 1), ("ticket", 1), ("message", 8)] {
            assert_eq!(world.records(kind).len(), count, "{kind}");
        }
        assert_eq!(world.records("conversation")[0]["unreadMsgCnt"], 8);
        assert!(world.derived().starts_with("8 "), "{}", world.derived());
        assert_eq!(world.records("ticket")[0]["ticketNumber"], "1");
        let events = world.events();
        let sequences: Vec<_> = events.iter().map(|event| event["sequence"].as_i64().unwrap()).collect();
        assert_eq!(sequences, (1..=9).collect::<Vec<_>>());
        assert_eq!(kinds(&events)[..2], ["message.received", "ticket.opened"]);

        // Eight processes that receive the same message at the same time store only one message.
        let children: Vec<Child> =
            (0..8).map(|_| world.start(&["message", "receive", "--store", "s"], &format!("{}\n", message("li", "t", "same")))).collect();
        let answers: Vec<Value> = children
            .into_iter()
            .map(|child| parsed(&String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()).remove(0))
            .collect();
        assert_eq!(answers.iter().filter(|answer| answer["duplicate"] == false).count(), 1, "{answers:?}");
        assert!(
            answers.iter().all(|answer| answer["messageId"] == answers[0]["messageId"] && answer["ticketId"] == answers[0]["ticketId"])
        );
        assert_eq!(world.records("message").len(), 9);
    });
}

/// Reading events must not need the write lock. The test runs on SQLite only, which permits only one writer at a time.
#[test]
fn numbered_events_are_printed_while_another_process_writes() {
    use sqlx::{Connection, Executor};
    everywhere(|world| {
        if !world.url.starts_with("sqlite") {
            return;
        }
        world.one(message("li", "t", "x1"));
        let numbered = world.events();
        assert_eq!(kinds(&numbered), ["message.received", "ticket.opened"]);
        world.one(message("li", "t", "x2"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut writer = runtime.block_on(sqlx::SqliteConnection::connect(&world.url)).unwrap();
        runtime.block_on(writer.execute("BEGIN IMMEDIATE")).unwrap();
        assert_eq!(world.events(), numbered);
        runtime.block_on(writer.execute("ROLLBACK")).unwrap();
        assert_eq!(kinds(&world.events()), ["message.received", "ticket.opened", "message.received"]);
    });
}

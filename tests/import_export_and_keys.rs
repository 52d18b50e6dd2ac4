//! Tests of the commands for import, export and API keys, with the built binary: always on SQLite, and on PostgreSQL if
//! `COUNTERPART_TEST_POSTGRES` names a server on which databases may be created.

use std::{
    io::Write,
    process::{Command, Output, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use tempfile::TempDir;

/// The database of a test, and a folder for its files.
struct World {
    folder: TempDir,
    url: String,
}

/// Runs a test on a SQLite database, and on a PostgreSQL database if one is available.
fn everywhere(test: impl Fn(&World)) {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("test.db").display());
    test(&World { folder, url });
    #[expect(clippy::disallowed_methods, reason = "a test's own switch")]
    let Ok(server) = std::env::var("COUNTERPART_TEST_POSTGRES") else { return };
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("import_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        use sqlx::{Connection, Executor};
        let mut connection = sqlx::PgConnection::connect(&server).await.unwrap();
        connection.execute(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"))).await.unwrap();
    });
    let (base, _) = server.rsplit_once('/').unwrap();
    test(&World { folder: tempfile::tempdir().unwrap(), url: format!("{base}/{name}") });
}

impl World {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_counterpart"));
        command.args(arguments).env("DATABASE_URL", &self.url).current_dir(self.folder.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn fails(&self, arguments: &[&str], code: i32) {
        assert_eq!(self.run(arguments).status.code(), Some(code), "{arguments:?}");
    }

    fn store(&self, id: &str) {
        assert_eq!(self.ok(&["store", "create", "--id", id, "--name", "A store"]), format!("{id}\n"));
    }

    fn import(&self, store: &str, lines: &str) -> Output {
        let mut command = self.command(&["import", "--store", store, "-"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Imports lines into a store, and asserts that the import succeeds.
    fn load(&self, store: &str, lines: &str) {
        let output = self.import(store, lines);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Imports lines into a store, and asserts that the import fails. Returns the error message.
    fn refused(&self, store: &str, lines: &str) -> String {
        let output = self.import(store, lines);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        said
    }

    fn export(&self, store: &str) -> String {
        self.ok(&["export", "--store", store])
    }

    /// On SQLite, asserts that the indexes match their tables, since an import may build some indexes at its end. Returns the names and
    /// definitions of all tables, indexes and triggers. On PostgreSQL, returns an empty list.
    fn sound_schema(&self) -> Vec<String> {
        let Some(file) = self.url.strip_prefix("sqlite://") else { return Vec::new() };
        let connection = rusqlite::Connection::open(file).unwrap();
        let found: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(found, "ok");
        let mut statement = connection.prepare("SELECT name || COALESCE(sql, '') FROM sqlite_schema ORDER BY name").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }
}

/// The input is a device that returns bytes without end. If the command had no limit, it would fill the disk or the memory.
#[test]
fn an_input_that_never_ends_is_refused() {
    everywhere(|world| {
        world.store("s");
        for (arguments, reason) in [
            (&["import", "--store", "s", "/dev/zero"][..], "`/dev/zero` cannot be read: a line is longer than 16 MiB"),
            (&["message", "receive", "--store", "s", "/dev/zero"], "line 1: is longer than 16 MiB"),
            (&["contract", "diff", "/dev/zero", "/dev/zero"], "/dev/zero cannot be read: it is longer than 256 MiB"),
        ] {
            let output = world.run(arguments);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && said.contains(reason), "{arguments:?}: {said}");
        }
    });
}

#[test]
fn a_text_beyond_the_limit_is_accepted_only_from_an_export() {
    const MOST: usize = 64 * 1024;
    let line = |text: &str| {
        format!(
            "{{\"kind\":\"comment\",\"record\":{{\"id\":\"long\",\"conversationId\":\"v1\",\"text\":\"{text}\",\"createdBy\":\"00000000-0000-4000-8000-00000000000a\",\"sentAt\":\"2026-01-01T00:00:00Z\"}}}}\n"
        )
    };
    everywhere(|world| {
        world.store("s");
        world.load("s", SAMPLE);
        world.load("s", &line(&"x".repeat(MOST)));
        let said = world.refused("s", &line(&"ก".repeat(MOST / 3 + 1)));
        assert!(said.contains("comment.text: is 65538 bytes long in UTF-8; the most is 65536"), "{said}");
        // A record with `asStored` may exceed the limit: a build that is older than the limit may have stored it.
        let marked = line(&"x".repeat(MOST + 1)).replacen("{", "{\"asStored\":true,", 1);
        world.load("s", &marked);
        let exported = world.export("s");
        assert_eq!(exported.matches("\"asStored\":true").count(), 1, "only the record that is too long is marked");
        world.store("again");
        world.load("again", &exported);
        assert!(world.export("again") == exported, "an export imports to the same bytes");
        // Exports of older builds flag such a record with `oversized` instead of `asStored`.
        world.load("again", &exported.replace("asStored", "oversized"));
    });
}

#[test]
fn each_text_without_a_limit_in_the_contract_has_a_default_limit() {
    let long = "x".repeat(64 * 1024 + 1);
    everywhere(|world| {
        world.store("s");
        world.load("s", SAMPLE);
        let exported = world.export("s");
        let changed = |kind: &str, change: &dyn Fn(&mut serde_json::Value)| {
            let line = exported.lines().find(|line| line.starts_with(&format!("{{\"kind\":\"{kind}\""))).unwrap();
            let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
            change(&mut line["record"]);
            line.to_string()
        };
        let contact = |member: &str, value: serde_json::Value| changed("contact", &|record| record[member] = value.clone());
        let field = r#"{"kind":"ticketField","record":{"id":"long-t","name":"L","displayType":"text","dataType":"string","sortOrder":9,"isRequired":false,"active":true,"createdAt":"2026-01-01T00:00:00Z","updatedAt":"2026-01-01T00:00:00Z"}}
{"kind":"contactField","record":{"id":"long-c","name":"L","displayType":"text","dataType":"string","sortOrder":9,"active":true}}
"#;
        world.load("s", field);
        for (lines, place) in [
            (contact("note", long.as_str().into()), "contact.note"),
            (contact("addresses", serde_json::json!(["a", long])), "contact.addresses[1]"),
            (contact("customFields", serde_json::json!({"long-c": long})), "contact.customFields.long-c"),
            (changed("ticket", &|record| record["ticketFields"] = serde_json::json!({"long-t": long})), "ticket.ticketFields.long-t"),
        ] {
            let said = world.refused("s", &lines);
            assert!(said.contains(&format!("{place}: is 65537 bytes long")), "{said}");
        }
    });
}

/// The import lines of a small store with a record of each kind.
const SAMPLE: &str = r##"{"kind":"role","record":{"id":"owner","name":"Owner","kind":"owner"}}
{"kind":"user","record":{"id":"s1","userId":"00000000-0000-4000-8000-00000000000A","name":"Mali","email":"mali@example.com","roleId":"owner"}}
{"kind":"user","record":{"id":"s2","email":"new@example.com"}}
{"kind":"team","record":{"id":"t1","name":"Front","users":["00000000-0000-4000-8000-00000000000a","nobody"]}}
{"kind":"account","record":{"id":"a1","channel":"whatsapp","name":"Shop","status":"healthy","metadata":{"userName": "shop","country":"TH"},"userIds":["00000000-0000-4000-8000-00000000000a"]}}
{"kind":"template","record":{"id":"tp1","accountId":"a1","name":"hello","parameter_format":"POSITIONAL","language":"th","status":"APPROVED","category":"UTILITY","components":[{"type":"BODY","text":"สวัสดี {{1}}"}]}}
{"kind":"label","record":{"id":"l1","label":"Urgent","color":"#ff0000","createdAt":"2026-01-01T00:00:00Z","updatedAt":"2026-01-01T00:00:00Z"}}
{"kind":"contactField","record":{"id":"cf1","name":"Tier","displayType":"select","dataType":"string","sortOrder":1,"active":true,"selectOptions":[{"value":"gold","children":[{"value":"old gold"}]}]}}
{"kind":"ticketField","record":{"id":"tf1","name":"Due","displayType":"datetime","dataType":"date","sortOrder":1,"isRequired":false,"active":true,"accountIds":["a1"],"createdAt":"2026-01-01T00:00:00Z","updatedAt":"2026-01-01T00:00:00Z"}}
{"kind":"ticketField","record":{"id":"tf2","name":"Tags","displayType":"multi_select","dataType":"string","sortOrder":2,"isRequired":false,"active":true,"showConditions":[{"ticketFieldId":"tf1","operator":"not_in","value":[1]}],"createdAt":"2026-01-01T00:00:00Z","updatedAt":"2026-01-01T00:00:00Z"}}
{"kind":"contact","record":{"id":"c1","fullName":"Nok S","firstName":"Nok","email":"Nok@Example.com","phone":"+66800000001","customFields":{"cf1":"gold"},"createdAt":"2026-01-01T00:00:00Z","updatedAt":"2026-01-01T00:00:00Z"}}
{"kind":"conversation","record":{"id":"v1","channel":"whatsapp","accountId":"a1","contactId":"c1","displayName":"Nok","referenceId":"+66800000001","labelIds":["l1","gone"],"isSpam":false,"unreadMsgCnt":2,"allMsgCnt":9,"createdAt":"2026-01-01T00:00:00Z","updatedAt":"2026-01-01T00:00:00Z"}}
{"kind":"ticket","record":{"id":"k1","ticketNumber":"7","isOpen":false,"openedAt":"2026-01-01T00:00:00Z","closedAt":"2026-01-02T00:00:00Z","conversationId":"v1","resolutionStatus":"human","ticketFields":{"tf2":["b","a"],"tf1":"2026-01-31T07:00:00+07:00","salesRevenue":12.50}}}
{"kind":"ticket","record":{"id":"k2","isOpen":true,"isFollowUp":true,"openedAt":"2026-01-03T00:00:00Z","conversationId":"v1"}}
{"kind":"message","record":{"id":"m1","conversationId":"v1","direction":"inbound","sentAt":"2026-01-01T00:00:00Z","text":"hello","sender":{"type":"contact","id":"c1"},"externalId":"x1"}}
{"kind":"message","record":{"id":"m2","conversationId":"v1","direction":"outbound","sentAt":"2026-01-03T00:00:01Z","type":"auto_response","payload":{"type":"image","images":["https://example.com/a.png"]}}}
{"kind":"comment","record":{"id":"n1","conversationId":"v1","text":"look","createdBy":"00000000-0000-4000-8000-00000000000a","sentAt":"2026-01-01T00:00:00Z"}}
"##;

#[test]
fn an_export_imports_to_the_same_bytes_in_any_order() {
    everywhere(|world| {
        for store in ["one", "two", "three"] {
            world.store(store);
        }
        world.load("one", SAMPLE);
        let first = world.export("one");
        assert_eq!(first.lines().count(), SAMPLE.lines().count());
        world.load("two", &first);
        assert_eq!(world.export("two"), first);
        let backwards: String = first.lines().rev().map(|line| format!("{line}\n")).collect();
        world.load("three", &backwards);
        assert_eq!(world.export("three"), first);

        let fields = r#""ticketFields":{"tf2":["b","a"],"tf1":"2026-01-31T00:00:00.000Z","salesRevenue":12.5,"resolutionStatus":"human"}"#;
        assert!(first.contains(fields), "{first}");
        assert!(first.contains(r#""ticketNumber":"8","isOpen":true"#), "the sequence continues after the highest number: {first}");
        assert!(first.contains(r#""metadata":{"userName": "shop","country":"TH"}"#), "free-form objects stay unchanged: {first}");
        assert!(first.contains(r#""userId":"00000000-0000-4000-8000-00000000000a""#), "{first}");
    });
}

/// A store may contain values that older builds accepted and that operations now refuse, such as an FTP address in a URL field. An import
/// accepts these values.
#[test]
fn an_import_accepts_exported_values_that_operations_now_refuse() {
    let sample = SAMPLE
        .replace(
            r#""displayType":"multi_select","dataType":"string","sortOrder":2"#,
            r#""displayType":"url","dataType":"string","sortOrder":2"#,
        )
        .replace(r#""tf2":["b","a"]"#, r#""tf2":"ftp://example.com/a""#)
        .replace(r#""images":["https://example.com/a.png"]"#, r#""images":["https://example.com/a.png"," ",""]"#)
        .replace(r#""components":[{"#, r#""components":[{"type":"HEADER","format":"IMAGE"},{"#);
    everywhere(|world| {
        for store in ["one", "two"] {
            world.store(store);
        }
        world.load("one", &sample);
        let first = world.export("one");
        for held in ["ftp://example.com/a", r#"["https://example.com/a.png"," ",""]"#, r#""format":"IMAGE""#] {
            assert!(first.contains(held), "{held}: {first}");
        }
        world.load("two", &first);
        assert_eq!(world.export("two"), first);
    });
}

#[test]
fn importing_the_same_file_again_changes_nothing() {
    everywhere(|world| {
        world.store("one");
        world.load("one", SAMPLE);
        let first = world.export("one");
        world.load("one", SAMPLE);
        assert_eq!(world.export("one"), first, "times of creation and assigned numbers stay unchanged");
    });
}

#[test]
fn an_upsert_replaces_and_unique_values_can_move_between_records() {
    let contact = |id: &str, more: &str| {
        let times = r#""createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z""#;
        format!("{{\"kind\":\"contact\",\"record\":{{\"id\":\"{id}\",\"fullName\":\"F\",\"firstName\":\"F\",{times}{more}}}}}\n")
    };
    everywhere(|world| {
        world.store("one");
        world.load("one", &(contact("a", r#","email":"a@x.io","note":"n""#) + &contact("b", r#","email":"b@x.io""#)));
        world.load("one", &(contact("a", r#","email":"B@x.io""#) + &contact("b", r#","email":"a@x.io""#)));
        let export = world.export("one");
        assert!(export.contains(r#""email":"B@x.io""#) && !export.contains("note"), "{export}");
        let said = world.refused("one", &contact("c", r#","email":"b@X.io""#));
        assert!(said.contains("line 1: contact.email: `b@x.io` belongs to the contact `a` already"), "{said}");

        // A conversation has at most one open ticket. One import may close this ticket and open the next one, with the two lines in any
        // order.
        world.load("one", SAMPLE);
        let ticket = |rest: &str| format!("{{\"kind\":\"ticket\",\"record\":{{\"conversationId\":\"v1\",{rest}}}}}\n");
        let next = ticket(r#""id":"k3","isOpen":true,"openedAt":"2026-01-05T00:00:00Z""#);
        let said = world.refused("one", &next);
        assert!(said.contains("line 1: ticket.isOpen: a conversation has at most one open ticket"), "{said}");
        let closed = ticket(r#""id":"k2","isOpen":false,"openedAt":"2026-01-03T00:00:00Z","closedAt":"2026-01-04T00:00:00Z""#);
        world.load("one", &(next + &closed));
        let export = world.export("one");
        assert!(export.contains(r#""id":"k2","ticketNumber":"8""#) && export.contains(r#""id":"k3","ticketNumber":"9""#), "{export}");
    });
}

/// First, three imports are refused and leave nothing. The first import that succeeds is larger than the database, so on SQLite it drops
/// indexes and builds them again when it ends. The next two imports are smaller than the database, so they keep the indexes. At last,
/// another database gets the lines in reverse order: each record comes before the records that it refers to.
#[test]
fn imports_into_small_and_large_databases_give_the_same_result() {
    let text = "text ".repeat(400);
    let mut lines = SAMPLE.replacen(r#""externalId":"x1""#, r#""externalId":"x-0""#, 1);
    for n in 0..600 {
        let times = r#""createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z""#;
        lines.push_str(&format!(
            "{{\"kind\":\"contact\",\"record\":{{\"id\":\"c-{n}\",\"fullName\":\"F\",\"firstName\":\"F\",\"email\":\"e{n}@x.io\",{times}}}}}\n\
             {{\"kind\":\"conversation\",\"record\":{{\"id\":\"v-{n}\",\"channel\":\"whatsapp\",\"accountId\":\"a1\",\"contactId\":\"c-{n}\",\
             \"displayName\":\"D\",\"referenceId\":\"+6680001{n:04}\",\"labelIds\":[\"l1\"],\"isSpam\":false,{times}}}}}\n\
             {{\"kind\":\"ticket\",\"record\":{{\"id\":\"k-{n}\",\"isOpen\":true,\"openedAt\":\"2026-01-03T00:00:00Z\",\"conversationId\":\"v-{n}\",\
             \"ticketFields\":{{\"tf2\":[\"a{n}\",\"b\"]}}}}}}\n\
             {{\"kind\":\"message\",\"record\":{{\"id\":\"m-{n}\",\"conversationId\":\"v-{n}\",\"direction\":\"inbound\",\
             \"sentAt\":\"2026-02-01T00:00:00Z\",\"text\":\"{text}\",\"externalId\":\"x-{}\"}}}}\n",
            n + 1
        ));
    }
    everywhere(|world| {
        world.store("one");
        let schema = world.sound_schema();
        for (from, to, expected) in [
            (r#""email":"e17@x.io""#, r#""email":"E44@x.io""#, "line 194: contact.email: `e44@x.io` belongs to the contact `c-17` already"),
            (
                r#""referenceId":"+66800010017""#,
                r#""referenceId":"+66800010044""#,
                "line 195: conversation.referenceId: `+66800010044` belongs to the conversation `v-17`",
            ),
            (
                r#""externalId":"x-18""#,
                r#""externalId":"x-45""#,
                "line 197: message.externalId: `x-45` belongs to the message `m-17` already",
            ),
        ] {
            let said = world.refused("one", &lines.replacen(from, to, 1));
            assert!(said.contains(expected), "expected {expected:?}, got {said}");
            assert_eq!((world.export("one").as_str(), &world.sound_schema()), ("", &schema));
        }
        world.load("one", &lines);
        let first = world.export("one");
        assert_eq!(first.lines().count(), lines.lines().count());
        assert_eq!(world.sound_schema(), schema);
        world.load("one", &lines);
        assert_eq!((&world.export("one"), &world.sound_schema()), (&first, &schema));
        world.store("two");
        world.load("two", &first);
        assert_eq!((&world.export("two"), &world.sound_schema()), (&first, &schema));
    });
    everywhere(|world| {
        world.store("one");
        let schema = world.sound_schema();
        let backwards: String = lines.lines().rev().map(|line| format!("{line}\n")).collect();
        world.load("one", &backwards);
        assert_eq!((world.export("one").lines().count(), world.sound_schema()), (lines.lines().count(), schema));
    });
}

#[test]
fn an_import_with_an_invalid_line_reports_it_and_writes_nothing() {
    let with = |from: &str, to: &str| {
        assert!(SAMPLE.contains(from), "{from}");
        SAMPLE.replacen(from, to, 1)
    };
    everywhere(|world| {
        world.store("one");
        for (lines, expected) in [
            (with(r#""openedAt":"2026-01-03T00:00:00Z""#, r#""openedAt":"soon""#), "line 14: ticket.openedAt: must be an RFC 3339"),
            (with(r#""openedAt":"2026-01-03T00:00:00Z","#, ""), "line 14: ticket.openedAt: is required"),
            (with(r#""kind":"comment""#, r#""kind":"note""#), "line 17: kind: `note` is none of role, user"),
            (with(r#""text":"hello""#, r#""txt":"hello""#), "line 15: message.txt: is not a property of a message"),
            (with(r#""direction":"inbound""#, r#""direction":"in""#), "line 15: message.direction: unknown variant `in`"),
            (with(r#"["b","a"]"#, r#""b""#), "line 13: ticket.ticketFields.tf2: must be an array"),
            (with(r#""tf2":["b","a"]"#, r#""tf9":1"#), "line 13: ticket.ticketFields.tf9: there is no ticket field"),
            (with(r#""resolutionStatus":"human""#, r#""resolutionStatus":"none""#), "line 13: ticket.resolutionStatus: `none` is none of"),
            (with(r#""id":"k2","#, r#""id":"k2","channel":"line","#), "line 14: ticket.channel: is `line` where its conversation `v1`"),
            (with(r#""channel":"whatsapp","accountId""#, r#""channel":"line","accountId""#), "line 12: conversation.channel: is `line`"),
            (with(r#""contactId":"c1""#, r#""contactId":"c9""#), "line 12: conversation.contactId: there is no contact `c9`"),
            (with(r#""id":"n1","conversationId":"v1""#, r#""id":"n1","conversationId":"v9""#), "line 17: comment.conversationId: there is"),
            (with(r#""accountIds":["a1"]"#, r#""accountIds":["a9"]"#), "ticketField.accountIds: there is no account `a9`"),
            (with(r#""id":"m2""#, r#""id":"m1""#), "line 16: message.id: `m1` stands on line 15 already"),
            (with(r#""phone":"+66800000001""#, r#""phone":"0800000001""#), "line 11: contact.phone: must be a phone number"),
            (with(r#""multi_select","dataType":"string""#, r#""date","dataType":"string""#), "line 10: ticketField.dataType: "),
            (
                with(r#"{"kind":"role","record":{"id":"owner","name":"Owner","kind":"owner"}}"#, r#"["role",{"id":"owner"}]"#),
                "line 1: invalid type: sequence",
            ),
            (
                with(r#"{"id":"owner","name":"Owner","kind":"owner"}"#, r#"["owner","Owner","owner"]"#),
                "line 1: role: invalid type: sequence",
            ),
            (with(r#"{"type":"contact","id":"c1"}"#, r#"["c1",null,null,"contact"]"#), "line 15: message.sender: invalid type: sequence"),
            (with(r#"[{"value":"old gold"}]"#, r#"[["old gold",[]]]"#), "line 8: contactField.selectOptions[0].children[0]: invalid type"),
            (
                with(r#"{"ticketFieldId":"tf1","operator":"not_in","value":[1]}"#, r#"["tf1","not_in",1]"#),
                "line 10: ticketField.showConditions[0]: inv",
            ),
            (
                with(r#""payload":{"#, r#""text":"a","payload":{"text":"b","#),
                "line 16: message.payload.text: is not the message's own `text`",
            ),
            (with("#ff0000", "#f00"), "line 7: label.color: `#f00` must be `#` and 6 hex digits, such as #1a2b3c"),
            (with("12.50", "12.34567"), "line 13: ticket.ticketFields.salesRevenue: must be a number from 0 on"),
            (with("12.50", "12.50000000000000000001"), "line 13: ticket.ticketFields.salesRevenue: holds 12.50000000000000000001, which"),
            (with(r#"{"cf1":"gold"}"#, r#"{"cf1":0.1000000000000000000001}"#), "line 11: contact.customFields.cf1: holds 0.1"),
            (with("2026-01-03T00:00:01Z", "2026-01-03T00:00:60Z"), "line 16: message.sentAt: must be an RFC 3339"),
            (with(r#""country":"TH""#, r#""country":null"#), "line 5: account.metadata.country: must not be null"),
            ("\u{a0}\n".to_owned(), "line 1: JSON: expected value"),
            ("nonsense\n".to_owned(), "line 1: JSON: expected ident"),
        ] {
            let said = world.refused("one", &lines);
            assert!(said.contains(expected) && said.contains("nothing was imported"), "expected {expected:?}, got {said}");
        }
        assert_eq!(world.export("one"), "");
        let said = world.refused("nowhere", SAMPLE);
        assert!(said.contains("there is no store `nowhere`"), "{said}");
    });
}

#[test]
fn an_import_reports_several_faults_together() {
    everywhere(|world| {
        world.store("one");
        let wrong = SAMPLE.replacen("#ff0000", "#f00", 1).replacen(r#""direction":"inbound""#, r#""direction":"in""#, 1).replacen(
            r#""kind":"comment""#,
            r#""kind":"note""#,
            1,
        );
        let said = world.refused("one", &wrong);
        let places = ["line 7: label.color: ", "line 15: message.direction: ", "line 17: kind: ", "nothing was imported"];
        let found: Vec<_> = places.iter().filter_map(|place| said.find(place)).collect();
        assert!(found.len() == places.len() && found.is_sorted() && !said.contains("the first"), "{said}");

        // The errors of lines that are not UTF-8 are reported together with the errors of other lines.
        let wrong = [b"\xff\n", SAMPLE.replacen("#ff0000", "#f00", 1).as_bytes(), b"\n\xff"].concat();
        let path = world.folder.path().join("wrong.ndjson");
        std::fs::write(&path, wrong).unwrap();
        let said = String::from_utf8(world.run(&["import", "--store", "one", path.to_str().unwrap()]).stderr).unwrap();
        assert!(said.contains("line 1: is not UTF-8") && said.contains("line 8: label.color: "), "{said}");
        assert_eq!(said.matches("is not UTF-8").count(), 2, "{said}");

        // The file has the same label 26 times, which causes errors on 25 lines. Only the first 20 errors are printed.
        let label = |id: &str| format!("{{\"kind\":\"label\",\"record\":{{\"id\":\"{id}\",\"label\":\"L\",\"color\":\"#000000\"}}}}\n");
        let said = world.refused("one", &label("l").repeat(26));
        assert_eq!(said.matches("label.id: `l` stands on line 1 already").count(), 20, "{said}");
        assert!(said.contains("line 21: ") && !said.contains("line 22: ") && said.contains("these are the first 20 faults"), "{said}");

        // References to missing contacts and accounts are found only while the import writes to the database. These errors are reported
        // with line numbers, as the errors of the validation are.
        let conversation = |contact: &str| {
            format!(
                "{{\"kind\":\"conversation\",\"record\":{{\"id\":\"{contact}\",\"channel\":\"line\",\"accountId\":\"none\",\"contactId\":\"{contact}\",\
                 \"displayName\":\"D\",\"referenceId\":\"{contact}\",\"labelIds\":[],\"isSpam\":false,\"createdAt\":\"2026-01-01T00:00:00Z\",\"updatedAt\":\"2026-01-01T00:00:00Z\"}}}}\n"
            )
        };
        let said = world.refused("one", &(conversation("x") + &conversation("y")));
        for expected in
            ["line 1: conversation.contactId: there is no contact `x`", "line 2: conversation.contactId: there is no contact `y`"]
        {
            assert!(said.contains(expected), "{said}");
        }
        assert_eq!(said.matches("conversation.accountId: there is no account `none`").count(), 1, "{said}");
        assert_eq!(world.export("one"), "");
    });
}

/// The validation of a file takes no write lock: it reports errors while another connection holds the lock.
#[test]
fn an_import_reports_faults_while_another_process_writes() {
    everywhere(|world| {
        let Some(file) = world.url.strip_prefix("sqlite://") else { return };
        world.store("one");
        let other = rusqlite::Connection::open(file).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let said = world.refused("one", "nonsense\n");
        assert!(said.contains("line 1: JSON: expected ident"), "{said}");
    });
}

#[test]
fn an_import_dry_run_reports_the_counts_and_writes_nothing() {
    everywhere(|world| {
        world.store("one");
        std::fs::write(world.folder.path().join("in.ndjson"), SAMPLE).unwrap();
        let said = world.ok(&["import", "--store", "one", "--dry-run", "in.ndjson"]);
        assert!(said.starts_with("would import 17 records: role 1, user 2"), "{said}");
        assert_eq!(world.export("one"), "");
        world.fails(&["import", "--store", "one"], 2);
        world.fails(&["import", "--store", "one", "missing.ndjson"], 1);
    });
}

#[test]
fn an_export_file_is_complete_or_absent() {
    everywhere(|world| {
        world.store("one");
        world.load("one", SAMPLE);
        world.ok(&["export", "--store", "one", "out.ndjson"]);
        assert_eq!(std::fs::read_to_string(world.folder.path().join("out.ndjson")).unwrap(), world.export("one"));
        world.fails(&["export", "--store", "nowhere", "other.ndjson"], 1);
        assert!(!world.folder.path().join("other.ndjson").exists());
    });
}

#[cfg(unix)]
#[test]
fn an_export_follows_symbolic_links_and_writes_into_pipes() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
    everywhere(|world| {
        world.store("one");
        world.load("one", SAMPLE);
        let whole = world.export("one");
        let path = |name: &str| world.folder.path().join(name);

        std::fs::create_dir(path("elsewhere")).unwrap();
        std::fs::write(path("elsewhere/real.ndjson"), "former").unwrap();
        std::fs::set_permissions(path("elsewhere/real.ndjson"), std::fs::Permissions::from_mode(0o640)).unwrap();
        symlink("elsewhere/real.ndjson", path("link.ndjson")).unwrap();
        world.ok(&["export", "--store", "one", "link.ndjson"]);
        assert!(path("link.ndjson").is_symlink());
        assert_eq!(std::fs::read_to_string(path("elsewhere/real.ndjson")).unwrap(), whole);
        assert_eq!(std::fs::metadata(path("elsewhere/real.ndjson")).unwrap().permissions().mode() & 0o777, 0o640);
        symlink("nowhere.ndjson", path("broken.ndjson")).unwrap();
        world.fails(&["export", "--store", "one", "broken.ndjson"], 1);
        assert!(path("broken.ndjson").is_symlink());

        assert!(Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
        let pipe = path("pipe");
        let reader = std::thread::spawn(move || std::fs::read_to_string(pipe).unwrap());
        world.ok(&["export", "--store", "one", "pipe"]);
        assert_eq!(reader.join().unwrap(), whole);
        assert!(std::fs::metadata(path("pipe")).unwrap().file_type().is_fifo());
        world.ok(&["export", "--store", "one", "/dev/null"]);
        world.fails(&["export", "--store", "one", "elsewhere"], 1);
    });
}

#[test]
fn an_empty_import_file_imports_nothing_without_an_error() {
    everywhere(|world| {
        world.store("one");
        world.load("one", "");
        world.load("one", "\u{feff}\r\n\n");
        world.load("one", &format!("\u{feff}{SAMPLE}"));
        assert_eq!(world.export("one").lines().count(), SAMPLE.lines().count());
    });
}

#[test]
fn a_database_that_cannot_be_opened_is_reported_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("text"),
        "no database, but a text that is longer than one page header of such a file, which has 100 bytes",
    )
    .unwrap();
    let at = |name: &str| format!("sqlite://{}", folder.path().join(name).display());
    for (url, expected) in [
        (at("missing/test.db"), "there is no folder `"),
        (format!("sqlite://{}", folder.path().display()), "Is a directory"),
        (at("text"), "not a database"),
        ("sqlite::memory:".to_owned(), "names no file: every connection would have a database of its own"),
        ("sqlite://:memory:".to_owned(), "names no file: every connection"),
        ("sqlite://x?mode=memory".to_owned(), "names no file: every connection"),
        ("sqlite://".to_owned(), "names no file: every connection"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_counterpart"))
            .args(["store", "create", "--id", "shop", "--name", "Shop"])
            .env("DATABASE_URL", &url)
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{url}: {said}");
        assert!(said.contains(expected) && !said.contains("Custom Error"), "{url}: {said}");
    }
}

#[test]
fn a_killed_import_leaves_the_database_unchanged() {
    everywhere(|world| {
        world.store("one");
        world.load("one", SAMPLE);
        let (before, schema) = (world.export("one"), world.sound_schema());
        let mut lines = String::new();
        for n in 0..200_000 {
            lines.push_str(&format!(
                "{{\"kind\":\"message\",\"record\":{{\"id\":\"x{n}\",\"conversationId\":\"v1\",\"direction\":\"inbound\",\
                 \"sentAt\":\"2026-02-01T00:00:00Z\",\"text\":\"text {n}\"}}}}\n"
            ));
        }
        std::fs::write(world.folder.path().join("many.ndjson"), lines).unwrap();
        let mut command = world.command(&["import", "--store", "one", "many.ndjson"]);
        let mut child = command.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1000));
        assert!(child.try_wait().unwrap().is_none(), "the import ended before it could be killed");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((world.export("one"), world.sound_schema()), (before, schema));
        world.load("one", SAMPLE);
    });
}

/// A transaction that receives a message first locks the conversation, then the ticket. An import must lock these rows in the same order.
#[test]
fn an_import_and_a_received_message_do_not_deadlock() {
    use sqlx::{Connection, Executor};
    everywhere(|world| {
        if !world.url.starts_with("postgres") {
            return;
        }
        world.store("one");
        world.load("one", SAMPLE);
        let file = world.folder.path().join("again.ndjson");
        for kind in ["ticket", "message"] {
            let mine = format!("{{\"kind\":\"{kind}\"");
            std::fs::write(
                &file,
                SAMPLE.lines().filter(|line| line.starts_with(&mine)).map(|line| format!("{line}\n")).collect::<String>(),
            )
            .unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut message = sqlx::PgConnection::connect(&world.url).await.unwrap();
                message.execute("BEGIN; SELECT id FROM conversations WHERE id = 'v1' FOR NO KEY UPDATE").await.unwrap();
                let import = world
                    .command(&["import", "--store", "one", "again.ndjson"])
                    .stdout(Stdio::null())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap();
                let waits = "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
                let mut watch = sqlx::PgConnection::connect(&world.url).await.unwrap();
                while sqlx::query_scalar::<_, i64>(waits).fetch_one(&mut watch).await.unwrap() == 0 {
                    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                }
                message.execute("SELECT id FROM tickets WHERE conversation_id = 'v1' FOR NO KEY UPDATE").await.unwrap();
                message.execute("UPDATE messages SET external_id = 'x2' WHERE id = 'm1'; COMMIT").await.unwrap();
                let output = import.wait_with_output().unwrap();
                assert!(output.status.success(), "{kind}: {}", String::from_utf8_lossy(&output.stderr));
            });
        }
    });
}

#[test]
fn a_key_is_created_rotated_edited_and_deleted_only_within_its_store() {
    everywhere(|world| {
        world.store("one");
        world.store("two");
        world.load("one", SAMPLE);
        let user = "00000000-0000-4000-8000-00000000000a";
        let shouted = user.to_uppercase();
        let secret = world.ok(&["key", "create", "--store", "one", "--name", "K", "--scopes", "tickets:write", "--user", &shouted]);
        assert!(secret.starts_with("cp_") && secret.trim_end().len() == 43, "{secret}");
        let listed = || serde_json::from_str::<serde_json::Value>(&world.ok(&["key", "list", "--store", "one"])).unwrap();
        let key = listed();
        assert_eq!(key["scopes"], serde_json::json!(["tickets:read", "tickets:write"]));
        assert_eq!(key["userId"], user);
        world.fails(&["key", "create", "--store", "one", "--name", "K", "--scopes", "tickets:write", "--user", "somebody"], 2);
        let id = key["id"].as_str().unwrap();
        for command in ["rotate", "deactivate", "activate", "delete"] {
            world.fails(&["key", command, "--store", "two", "--id", id], 1);
        }
        let rotated = world.ok(&["key", "rotate", "--store", "one", "--id", id, "--json"]);
        let rotated: serde_json::Value = serde_json::from_str(&rotated).unwrap();
        assert_ne!(rotated["secret"].as_str(), Some(secret.trim_end()));
        assert_eq!(rotated["id"], key["id"]);
        world.ok(&["key", "edit", "--store", "one", "--id", id, "--scopes", "labels:read"]);
        world.ok(&["key", "deactivate", "--store", "one", "--id", id]);
        world.fails(&["key", "rotate", "--store", "one", "--id", id], 1);
        let key = listed();
        assert_eq!((key["status"].as_str(), &key["scopes"]), (Some("inactive"), &serde_json::json!(["labels:read"])));
        world.ok(&["key", "delete", "--store", "one", "--id", id]);
        assert_eq!(world.ok(&["key", "list", "--store", "one"]), "");
        world.fails(&["key", "create", "--store", "one", "--name", "K", "--scopes", "tickets"], 2);
        world.fails(&["key", "edit", "--store", "one", "--id", id], 2);
        world.fails(&["store", "edit", "--id", "one"], 2);
        world.ok(&["store", "edit", "--id", "one", "--currency", "USD"]);
        world.ok(&["key", "create", "--store", "one", "--name", "K", "--scopes", "tickets:read, labels:read"]);
        world.fails(&["key", "create", "--store", "two", "--name", "K", "--scopes", "tickets:read", "--user", user], 1);
    });
}

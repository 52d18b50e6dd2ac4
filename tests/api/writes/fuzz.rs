//! Fuzz test with a fixed seed: random writes that are built from nearly valid pieces, the same in every run. No write causes an internal
//! failure. Afterwards the store can be exported and imported again.

use serde_json::{Value, json};

use super::{
    WriteFixture,
    common_http_behaviour::{WRITES, is_served},
};
use crate::{
    fixture::{ANN, BO, GHOST},
    fuzz::SeededRandom,
    harness::Database,
};

/// The number of requests to each operation.
const ROUNDS: usize = 80;

/// Returns the properties of the body of an operation, each with some values that are valid or nearly valid.
fn members(path: &str) -> Vec<(&'static str, Vec<Value>)> {
    let tickets = vec![json!("t-free"), json!("t-set"), json!("t-shut"), json!("t-spam"), json!("t-ann")];
    let talks = vec![json!("conv-free"), json!("conv-bare"), json!("conv-spam")];
    let users = vec![json!(ANN), json!(BO), json!(GHOST)];
    let values = vec![json!("x"), json!(3), json!(3.0), json!(["a"]), json!(true), json!("2025-01-31"), json!([]), Value::Null];
    let labels = vec![json!(["lab-a"]), json!(["lab-c", "lab-0"]), json!([]), json!(["nothing"])];
    match path {
        "/tickets/field-values" => vec![
            ("ticketId", tickets),
            ("ticketFieldId", ["f-text", "f-int", "f-multi", "f-flag", "f-date", "f-old", "aiCsat"].map(|id| json!(id)).to_vec()),
            ("newValue", values),
        ],
        "/tickets/close" => vec![
            ("ticketId", tickets),
            ("handledBy", users),
            ("totalRevenue", vec![json!(1), json!(0.1), json!(1e9)]),
            ("currency", vec![json!("USD"), json!("JPY")]),
            ("ticketFields", vec![json!({}), json!({"f-text": "y"}), json!({"f-int": 1, "f-multi": ["b"]})]),
        ],
        "/tickets/assign" => vec![("ticketId", tickets), ("assigneeUserId", users)],
        "/conversations/mark-read" => vec![("conversationId", talks)],
        "/conversations/labels" => vec![("conversationId", talks), ("addLabels", labels.clone()), ("removeLabels", labels)],
        "/contacts" => vec![
            ("firstName", vec![json!("Ada"), json!("ไทย"), json!(" ")]),
            ("lastName", vec![json!("L"), json!("")]),
            ("email", (0..9).map(|n| json!(format!("a{n}@example.com"))).collect()),
            ("phone", (0..9).map(|n| json!(format!("+4412345{n}"))).collect()),
        ],
        "/contacts/field-values" => vec![
            ("contactId", vec![json!("con-mia"), json!("con-new")]),
            ("contactFieldId", vec![json!("c-text"), json!("c-int"), json!("c-multi")]),
            ("value", values),
            ("updatedAt", vec![json!("2025-01-20T00:00:00.000Z"), json!("2025-02-01T00:00:00.000Z")]),
        ],
        "/messages/email/new" | "/messages/email" => {
            let (id, ids) = match path {
                "/messages/email" => ("conversationId", vec![json!("conv-ann"), json!("conv-free")]),
                _ => ("accountId", vec![json!("acc-ann"), json!("acc-line")]),
            };
            let lists = vec![json!([{"email": "a1@example.com"}]), json!([{"email": "A1@Example.com", "name": "\u{202e}𝕏"}]), json!([])];
            vec![
                (id, ids),
                ("to", lists[..2].to_vec()),
                ("cc", lists.clone()),
                ("bcc", lists),
                ("subject", vec![json!("S"), json!(""), json!(" ")]),
                ("text", vec![json!("x"), json!("")]),
                ("html", vec![json!("<p>"), json!("")]),
            ]
        }
        "/messages/template" | "/messages/template/phone" => {
            let mut members =
                vec![("templateId", vec![json!("tpl-one")]), ("variables", vec![json!(["x"]), json!(["{{1}}"]), json!([""])])];
            members.extend(match path {
                "/messages/template" => vec![("conversationId", vec![json!("conv-wa"), json!("conv-free")])],
                _ => vec![("accountId", vec![json!("acc-wa")]), ("phoneNumber", vec![json!("+66841111111"), json!("+66812345678")])],
            });
            members
        }
        _ => vec![("conversationId", talks), ("text", vec![json!("x"), json!(""), json!("\u{202e}𝕏")])],
    }
}

/// Returns values that are valid for hardly any property.
fn mostly_invalid_values() -> Vec<Value> {
    vec![
        Value::Null,
        json!(-1),
        json!(1.5e300),
        json!(u64::MAX),
        json!(""),
        json!("\u{0}"),
        json!("'; drop table tickets; --"),
        json!("9999-12-31T23:59:59.999Z"),
        json!("0001-01-01T00:00:00+14:00"),
        json!("x".repeat(5000)),
        json!([[[]]]),
        json!({"": {"\u{0}": null}}),
        json!({"f-text": "\u{0}"}),
        json!(["\u{0}"]),
    ]
}

fn body(dice: &mut SeededRandom, path: &str) -> Value {
    let mut body = json!({});
    for (name, choices) in members(path) {
        match dice.roll(40) {
            0 => {}
            1 => body[name] = dice.pick(&mostly_invalid_values()),
            _ => body[name] = dice.pick(&choices),
        }
    }
    if dice.roll(30) == 0 {
        body["__proto__"] = dice.pick(&mostly_invalid_values());
    }
    body
}

#[test]
fn nearly_valid_writes_get_documented_answers_and_leave_a_sound_store() {
    let shop = WriteFixture::open();
    let mut dice = SeededRandom(0x5eed_2025_0002);
    let mut taken = 0;
    for (path, method) in WRITES.into_iter().filter(|(path, _)| is_served(path)) {
        for _ in 0..ROUNDS {
            let sent = if path == "/tickets/assign" {
                (0..1 + dice.roll(3)).map(|_| body(&mut dice, path)).collect()
            } else {
                body(&mut dice, path)
            };
            let mut bytes = sent.to_string().into_bytes();
            if dice.roll(16) == 0 {
                bytes.truncate(dice.roll(bytes.len()));
            }
            let mut call = shop.api.call(&method.to_ascii_uppercase(), path).header("content-type", "application/json").bytes(bytes);
            if dice.roll(4) == 0 {
                let keys = ["k", "", " ", "\u{e9}", "0a000000-0000-4000-8000-000000000001"];
                call = call.header("idempotency-key", keys[dice.roll(keys.len())]);
            }
            let answer = call.send();
            assert!([200, 400, 404, 409].contains(&answer.status), "{}", answer.described());
            taken += usize::from(answer.status == 200);
        }
    }
    // Most requests are expected to be refused. Checks that enough requests succeeded for the test to be useful.
    assert!(taken > WRITES.len() * 5, "only {taken} requests succeeded");
    for (n, event) in (1..).zip(shop.events()) {
        assert_eq!(event["sequence"], n);
    }
    // The export of the imported store must equal the first export byte for byte. So the file is imported unchanged, without parsing its
    // lines.
    let home = tempfile::tempdir().expect("a directory for temporary files");
    let file = home.path().join("desk.ndjson");
    let file = file.to_string_lossy();
    shop.server.database.run(&["export", "--store", "desk", &file]);
    let again = Database::fresh();
    again.run(&["store", "create", "--id", "desk", "--name", "Again"]);
    again.run(&["import", "--store", "desk", &file]);
    let (exported, again) = (shop.server.database.run(&["export", "--store", "desk"]), again.run(&["export", "--store", "desk"]));
    assert!(exported == again, "the export of the import differs:\n{exported}\n---\n{again}");
}

//! Tests of edge cases of full-text search: odd queries, each kind of write that changes the results, and reading the pages of a search
//! while messages arrive.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::{
    REV_A,
    client::{Answer, Api},
    fixture::{at, line, with},
    harness::{ALL_SCOPES, SIMULATED, Server},
    pagination_client::{next, walk},
};

fn conversation(id: &str, account: &str, more: Value) -> Value {
    let base = json!({
        "id": id, "channel": if account == "mail" { "gmail" } else { "widget" }, "accountId": account, "contactId": "kim",
        "displayName": id, "referenceId": id, "labelIds": [], "isSpam": false,
        "createdAt": at("01-01T00:00"), "updatedAt": at("01-01T00:00"),
    });
    line("conversation", with(base, more))
}

fn message(id: &str, conversation: &str, minute: usize, text: &str) -> Value {
    let sent = at(&format!("02-01T08:{minute:02}"));
    line("message", json!({"id": id, "conversationId": conversation, "direction": "inbound", "sentAt": sent, "text": text}))
}

fn contact(id: &str, name: &str, more: Value) -> Value {
    let base = json!({"id": id, "fullName": name, "firstName": name, "createdAt": at("01-01T00:00"), "updatedAt": at("01-01T00:00")});
    line("contact", with(base, more))
}

fn shop() -> Vec<Value> {
    vec![
        line("account", json!({"id": "chat", "channel": "widget", "name": "Chat", "status": "healthy"})),
        line("account", json!({"id": "mail", "channel": "gmail", "name": "shop@example.com", "status": "healthy"})),
        line(
            "contactField",
            json!({"id": "tier", "name": "Tier", "displayType": "text", "dataType": "string", "sortOrder": 1, "active": true}),
        ),
        contact("kim", "Kim Quill", json!({"email": "kim@example.com"})),
        contact("quill", "Quill", json!({"updatedAt": at("01-02T00:00")})),
        conversation("talk", "chat", json!({})),
        conversation("letter", "mail", json!({"emailSubject": "Chipped saucer"})),
        conversation("junk", "chat", json!({"isSpam": true})),
        message("first", "talk", 1, "the teapot leaks"),
        message("mailed", "letter", 2, "see above"),
        message("spam", "junk", 3, "win a lottery"),
    ]
}

fn server() -> (Server, Api) {
    let server = Server::start_with(crate::harness::Database::with(&[("shop", shop()), ("other", vec![])]), SIMULATED);
    let api = server.api("shop", &ALL_SCOPES);
    (server, api)
}

fn messages(api: &Api, query: &str) -> Answer {
    api.get("/messages/search").query("query", query).send()
}

fn listed(api: &Api, search: &str) -> Vec<String> {
    walk(&api.post("/contacts/list", json!({"search": search})), 10)
}

/// Calls `finds`, which does a search, until it returns true. Panics after about a second. Needed after an import that changes the subject
/// of a conversation: searches find the changes of such an import only after the server's background worker has indexed them.
fn soon(finds: impl Fn() -> bool) {
    let found = (0..50).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        finds()
    });
    assert!(found, "not within a second");
}

#[test]
fn unusual_search_queries_find_the_expected_contacts_and_invalid_ones_are_refused() {
    let (server, api) = server();
    // Each query finds `kim`: punctuation and control characters are ignored, and so are diacritics on Latin letters.
    for query in ["\"kim\"", "kim*", "-kim", "ki", "k", "KIM", "kim\u{301}", "kim\u{0}", "kim\u{fffe}", "(kim", "kim) --", "'kim"] {
        assert_eq!(listed(&api, query), ["kim"], "{query:?}");
        if !REV_A {
            assert_eq!(api.get("/contacts/search").query("query", query).send().ids(), ["kim"], "{query:?}");
        }
    }
    for query in ["name:kim", "kim AND nobody", "kim NOT quill x", "\u{0}", "\\", "%", "_", "*", "\u{301}", "k_m", "%im", "im"] {
        assert_eq!(listed(&api, query), [""; 0], "{query:?}");
    }
    assert_eq!(listed(&server.api("other", &ALL_SCOPES), "kim"), [""; 0]);
    for blank in ["", " ", "\t\u{3000}\n"] {
        assert_eq!(listed(&api, blank), ["quill", "kim"], "{blank:?}");
    }
    api.post("/contacts/list", json!({"search": "k".repeat(101)})).send().refuses("body.search");
    api.post("/contacts/list", json!({"search": 7})).send().refuses("body.search");
    if REV_A {
        return;
    }
    for path in ["/messages/search", "/contacts/search"] {
        api.get(path).send().refuses("query");
        api.get(path).raw_query("query=teapot&query=teapot").send().refuses("query");
        // A query has at most 150 characters, and each diacritic counts as a character.
        api.get(path).query("query", format!("a{}", "\u{301}".repeat(10_000))).send().refuses("query");
        api.get(path).raw_query("query=%ff").send().refuses("query");
    }
    messages(&api, "t").lists(&["first"]);
    messages(&api, "saucer").lists(&["mailed"]);
    messages(&api, "lottery").lists(&["spam"]);
}

#[test]
fn each_kind_of_write_is_found_by_the_next_search() {
    let (server, api) = server();
    let made = api.post("/contacts", json!({"firstName": "Lan", "lastName": "Nguyễn", "email": "lan@new.example"})).send().ok();
    for search in ["lan nguyen", "lan@new", "new.example"] {
        assert_eq!(listed(&api, search), [made["id"].as_str().unwrap_or_default()], "{search}");
    }
    // The contact `kim` is named Kim Quill, and the contact `quill` is named Quill. Revision A lists the most recently updated contact
    // first, which is `quill`. Revision B lists the most relevant contact first, which is also `quill`, since its name is shorter.
    let in_order = |ids: &[&str]| assert_eq!(listed(&api, "quil"), ids);
    in_order(&["quill", "kim"]);
    let change = json!({"contactId": "kim", "contactFieldId": "tier", "value": "gold", "updatedAt": at("01-01T00:00")});
    api.call("PATCH", "/contacts/field-values").json(change).send().ok();
    // The change makes `kim` the most recently updated contact. By relevance, the contact with the shorter name stays first.
    in_order(if REV_A { &["kim", "quill"] } else { &["quill", "kim"] });
    if !REV_A {
        api.post("/messages", json!({"conversationId": "talk", "text": "ส่งพัสดุแล้ว"})).send().ok();
        assert_eq!(messages(&api, "พัสดุ").ids().len(), 1);
        let letter = json!({"accountId": "mail", "to": [{"email": "eva@example.com"}], "subject": "Gravy boat", "text": "with a ladle"});
        api.post("/messages/email/new", letter).send().ok();
        assert_eq!(messages(&api, "gravy").ids(), messages(&api, "ladle").ids());
        assert_eq!(messages(&api, "gravy ladle").ids().len(), 1);
        let reply = json!({"conversationId": "letter", "to": [{"email": "eva@example.com"}], "text": "a new tureen"});
        api.post("/messages/email", reply).send().ok();
        assert_eq!(messages(&api, "tureen").ids().len(), 1);
    }
    let inbound = json!({
        "accountId": "chat", "referenceId": "stranger", "externalId": "x-1", "sender": {"id": "visitor", "name": "Zora"},
        "text": "订单号是多少", "contact": {"firstName": "Zora", "phone": "+66811112222"},
    });
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), format!("{inbound}\n")).expect("the file is written");
    server.database.run(&["message", "receive", "--store", "shop", &file.path().to_string_lossy()]);
    assert_eq!((listed(&api, "zora").len(), listed(&api, "11112222").len()), (1, 1));
    if !REV_A {
        assert_eq!(messages(&api, "号是多").ids().len(), 1);
    }
}

#[test]
fn an_import_that_replaces_records_replaces_them_in_the_index() {
    let (server, api) = server();
    assert_eq!(listed(&api, "kim"), ["kim"]);
    server.database.import(
        "shop",
        &[
            contact("kim", "Tove Inker", json!({"note": "was somebody else", "updatedAt": at("01-03T00:00")})),
            message("first", "talk", 1, "the kettle sings"),
            conversation("letter", "mail", json!({"emailSubject": "Cracked plate"})),
            conversation("junk", "chat", json!({})),
        ],
    );
    soon(|| listed(&api, "tove").as_slice() == ["kim"] && (REV_A || messages(&api, "plate").ids() == ["mailed"]));
    assert_eq!(listed(&api, "kim"), [""; 0]);
    assert_eq!(listed(&api, "kim@example.com"), [""; 0]);
    assert_eq!(listed(&api, "somebody"), ["kim"]);
    assert_eq!(listed(&api, "quill"), ["quill"]);
    if !REV_A {
        for (query, expected) in
            [("teapot", &[][..]), ("kettle", &["first"]), ("saucer", &[]), ("plate", &["mailed"]), ("lottery", &["spam"])]
        {
            messages(&api, query).lists(expected);
        }
    }
}

#[test]
fn search_pages_list_each_existing_message_once_while_new_messages_arrive() {
    if REV_A {
        return;
    }
    let (server, api) = server();
    let there: Vec<String> = (0..45).map(|number| format!("old-{number:02}")).collect();
    let text = |number: usize| format!("ladle {}{}", "ladle ".repeat(number % 3), "of silver ".repeat(number % 5));
    server.database.import("shop", &there.iter().enumerate().map(|(n, id)| message(id, "talk", n, &text(n))).collect::<Vec<_>>());
    let call = api.get("/messages/search").query("query", "ladle");
    let (mut answer, mut seen) = (call.clone().send(), Vec::new());
    for number in 0.. {
        seen.extend(answer.ids());
        let Some(cursor) = next(&answer) else { break };
        assert!(number < 100, "the list has no last page");
        // Adds a message that ranks above all earlier results of the search, and one that ranks below them.
        for text in ["ladle ladle ladle", "a rather long text in which a ladle is one thing among many others that are in it"] {
            api.post("/messages", json!({"conversationId": "talk", "text": text})).send().ok();
        }
        for refused in [
            api.get("/messages/search").query("query", "ladles"),
            api.get("/contacts/search").query("query", "ladle"),
            server.api("other", &ALL_SCOPES).get("/messages/search").query("query", "ladle"),
        ] {
            refused.query("cursor", &cursor).send().refuses("cursor");
        }
        answer = call.clone().query("cursor", cursor).send();
    }
    let once: HashSet<&String> = seen.iter().collect();
    assert_eq!(once.len(), seen.len(), "a row came twice");
    assert!(there.iter().all(|id| once.contains(id)), "a row was left out");
}

//! Tests of full-text search: GET /messages/search and GET /contacts/search, which only the newer revision of the API has, and POST
//! /contacts/list with `search`, which both revisions have.

use serde_json::{Value, json};

use crate::{
    REV_A,
    client::{Answer, Api},
    fixture::{at, line, with},
    harness::{ALL_SCOPES, Database, Server},
    pagination_client::{next, pages, walk},
};

/// Returns the import lines of a store with contacts and messages in several writing systems, and an e-mail conversation.
fn shop() -> Vec<Value> {
    let talk = |id: &str, account: &str, channel: &str| {
        json!({
            "id": id, "channel": channel, "accountId": account, "contactId": "con-mia", "displayName": id, "referenceId": id,
            "labelIds": [], "isSpam": false, "createdAt": at("01-01T00:00"), "updatedAt": at("01-01T00:00"),
        })
    };
    let message = |id: &str, talk: &str, minute: usize, text: &str| {
        let sent = at(&format!("02-01T08:{minute:02}"));
        line("message", json!({"id": id, "conversationId": talk, "direction": "inbound", "sentAt": sent, "text": text}))
    };
    let contact = |id: &str, name: &str, day: usize| {
        let day = at(&format!("03-{day:02}T00:00"));
        json!({"id": id, "fullName": name, "firstName": name, "createdAt": day, "updatedAt": day})
    };
    let mia = json!({
        "email": "mia.n@example.com", "phone": "+66812345678", "secondaryEmails": ["mia@work.example"],
        "secondaryPhones": ["+66900000001"], "note": "ชอบน้ำหอม and tea",
    });
    let mut lines = vec![
        line("account", json!({"id": "acc-chat", "channel": "widget", "name": "Chat", "status": "healthy"})),
        line("account", json!({"id": "acc-mail", "channel": "gmail", "name": "shop@example.com", "status": "healthy"})),
        line("contact", with(contact("con-mia", "Mia Nguyễn", 1), mia)),
        line("contact", with(contact("con-tea", "Tea Tea", 2), json!({"note": "tea tea"}))),
        line("contact", contact("con-som", "สมชาย ใจดี", 3)),
        line("contact", with(contact("con-wang", "王 小明", 5), json!({"firstName": "小明", "lastName": "王"}))),
        line("contact", with(contact("con-li", "李小龙", 4), json!({"note": "a long note in which tea is a word among many others"}))),
        line("conversation", talk("chat", "acc-chat", "widget")),
        line("conversation", with(talk("mail", "acc-mail", "gmail"), json!({"emailSubject": "Broken teapot"}))),
        message("thai", "chat", 1, "สินค้าชำรุด ขอคืนเงินค่ะ"),
        message("chinese", "chat", 2, "请问什么时候发货"),
        message("vietnamese", "chat", 3, "Đơn hàng của tôi ở đâu"),
        message("letter", "mail", 4, "Please have a look"),
    ];
    // Twelve messages with the same text, two in each minute. They are equally relevant, so the newest comes first.
    lines.extend((0..12).map(|number| message(&format!("tie-{number:02}"), "chat", 10 + number / 2, "refund again")));
    lines.push(message("best", "chat", 9, "refund"));
    lines
}

fn server() -> (Server, Api) {
    let server = Server::with(&[("shop", shop()), ("other", vec![])]);
    let api = server.api("shop", &ALL_SCOPES);
    (server, api)
}

fn messages(api: &Api, query: &str) -> Answer {
    api.get("/messages/search").query("query", query).send()
}

fn contacts(api: &Api, query: &str) -> Answer {
    api.get("/contacts/search").query("query", query).send()
}

fn listed(api: &Api, filters: Value) -> Vec<String> {
    walk(&api.post("/contacts/list", filters), 1)
}

#[test]
fn the_older_revision_has_no_search() {
    if !REV_A {
        return;
    }
    let (_server, api) = server();
    messages(&api, "hello").fails(404);
    contacts(&api, "hello").fails(404);
}

#[test]
fn messages_are_found_by_text_and_subject() {
    if REV_A {
        return;
    }
    let (server, api) = server();
    for (query, expected) in [
        ("คืนเงิน", "thai"),
        ("发货", "chinese"),
        ("货", "chinese"),
        ("don hang", "vietnamese"),
        ("teapot", "letter"),
        ("look broken", "letter"),
    ] {
        messages(&api, query).lists(&[expected]);
    }
    let hit = messages(&api, "发货").row("chinese");
    let score = hit["score"].as_f64().unwrap_or_default();
    assert!(score > 0.0, "{hit}");
    assert_eq!(
        hit,
        json!({
            "id": "chinese", "conversationId": "chat", "text": "请问什么时候发货", "sentByRecipient": true,
            "sentAt": at("02-01T08:02"), "score": score,
        })
    );
    messages(&api, "nothing of the kind").lists(&[]);
    messages(&api, "\"*\\").lists(&[]);
    messages(&server.api("other", &ALL_SCOPES), "refund").lists(&[]);
}

#[test]
fn results_come_by_relevance_and_then_newest_first() {
    if REV_A {
        return;
    }
    let (_server, api) = server();
    let call = api.get("/messages/search").query("query", "refund");
    let pages = pages(&call, None);
    let ids: Vec<String> = pages.iter().flat_map(Answer::ids).collect();
    let ties = (0..12).rev().map(|number| format!("tie-{number:02}"));
    assert_eq!(ids, ["best".to_owned()].into_iter().chain(ties).collect::<Vec<_>>());
    assert_eq!(pages.iter().map(|page| page.ids().len()).collect::<Vec<_>>(), [10, 3]);
    assert!(pages.iter().all(|page| page.header("x-pagination-page-size") == Some("10")));
    let cursor = next(&pages[0]).unwrap_or_default();
    api.get("/messages/search").query("query", "refunds").query("cursor", &cursor).send().refuses("cursor");
    api.get("/contacts/search").query("query", "refund").query("cursor", &cursor).send().refuses("cursor");
}

#[test]
fn contact_search_returns_each_contact_with_the_fields_that_matched() {
    if REV_A {
        return;
    }
    let (_server, api) = server();
    for (query, fields) in [
        ("nguyen", &["fullName"][..]),
        ("mia", &["fullName", "email", "secondaryEmails"]),
        ("mia.n@example.com", &["email"]),
        ("work", &["secondaryEmails"]),
        ("0812345678", &["phone"]),
        ("9000", &["secondaryPhones"]),
        ("น้ำหอม", &["note"]),
        ("น้ำหอม mia 2345", &["fullName", "email", "phone", "secondaryEmails", "note"]),
    ] {
        let answer = contacts(&api, query);
        answer.lists(&["con-mia"]);
        let fields: Vec<Value> = fields.iter().map(|field| json!(field)).collect();
        let mut found = answer.row("con-mia");
        let sorted = |list: &Value| {
            let mut names: Vec<String> = list.as_array().into_iter().flatten().map(Value::to_string).collect();
            names.sort_unstable();
            names
        };
        assert_eq!(sorted(&found["matchedFields"]), sorted(&json!(fields)), "{query}");
        found["matchedFields"] = json!([]);
        assert_eq!(found, json!({"id": "con-mia", "fullName": "Mia Nguyễn", "phone": "+66812345678", "matchedFields": []}));
    }
    contacts(&api, "tea").lists(&["con-tea", "con-li", "con-mia"]);
    contacts(&api, "小龙").lists(&["con-li"]);
    // A name in a writing system without spaces is found by queries with and without spaces.
    for query in ["王小明", "王 小明", "小明", "王小", "小明 王"] {
        contacts(&api, query).lists(&["con-wang"]);
        assert_eq!(contacts(&api, query).row("con-wang")["matchedFields"], json!(["fullName"]), "{query}");
    }
    for query in ["สมชายใจดี", "สมชาย ใจดี", "ชายใจ"] {
        contacts(&api, query).lists(&["con-som"]);
    }
    contacts(&api, "MiaNguyễn").lists(&[]);
}

#[test]
fn a_query_is_one_to_150_characters_and_the_page_size_is_fixed() {
    if REV_A {
        return;
    }
    let (_server, api) = server();
    for path in ["/messages/search", "/contacts/search"] {
        let call = |query: &str| api.get(path).query("query", query);
        api.get(path).send().refuses("query");
        for bad in ["", "  \t", &"ก".repeat(151)] {
            call(bad).send().refuses("query");
        }
        call(&"ก".repeat(150)).send().lists(&[]);
        call(&format!("a{}", "\u{301}".repeat(149))).send().ok();
        call("tea").query("pageSize", 10).send().refuses("pageSize");
        call("tea").query("unknown", 1).send().ok();
        call("tea").query("expand", "account").send().refuses_expand();
        call("tea").query("cursor", "x").send().refuses("cursor");
    }
}

#[test]
fn a_search_in_the_contact_list_uses_the_sort_order_of_the_revision() {
    let (_server, api) = server();
    let expected = if REV_A { ["con-li", "con-tea", "con-mia"] } else { ["con-tea", "con-li", "con-mia"] };
    assert_eq!(listed(&api, json!({"search": "tea"})), expected);
    assert_eq!(listed(&api, json!({"search": "tea", "updatedAfter": at("03-02T00:00"), "updatedBefore": at("03-04T00:00")})), ["con-tea"]);
    if REV_A {
        let page = api.post("/contacts/list", json!({"search": "tea"})).query("pageSize", 2).send();
        assert_eq!(page.header("x-pagination-total"), Some("3"));
    }
}

#[test]
fn a_name_is_found_by_the_contact_list_with_and_without_its_space() {
    let (_server, api) = server();
    for query in ["王小明", "王 小明"] {
        assert_eq!(listed(&api, json!({"search": query})), ["con-wang"], "{query}");
    }
}

#[test]
fn a_write_is_found_at_once_and_in_its_newest_state() {
    let (server, api) = server();
    for number in 0..20 {
        let name = format!("Newcomer{number}");
        let made = api.post("/contacts", json!({"firstName": name, "phone": format!("+668877{number:04}")})).send().ok();
        assert_eq!(listed(&api, json!({"search": name})), [made["id"].as_str().unwrap_or_default()]);
        assert_eq!(listed(&api, json!({"search": format!("0877{number:04}")})).len(), 1);
        if !REV_A {
            api.post("/messages", json!({"conversationId": "chat", "text": format!("ส่งพัสดุ{number}แล้ว")})).send().ok();
            assert_eq!(messages(&api, &format!("พัสดุ{number}แล้ว")).ids().len(), 1, "{number}");
        }
    }
    // An import, which runs in a separate process, writes a contact. Both servers on the database must find the contact.
    let lines = [line(
        "contact",
        json!({"id": "con-late", "fullName": "Latecomer", "firstName": "Latecomer", "createdAt": at("04-01T00:00"), "updatedAt": at("04-01T00:00")}),
    )];
    let beside = server.beside(&[]);
    let other = Api { address: beside.address.clone(), ..api.clone() };
    server.database.import("shop", &lines);
    for api in [&api, &other] {
        assert_eq!(listed(api, json!({"search": "latecomer"})), ["con-late"]);
    }
}

#[test]
fn a_killed_server_and_a_lost_index_lose_no_search_results() {
    let (server, api) = server();
    let rename = |database: &Database, subject: &str| {
        let talk = json!({
            "id": "mail", "channel": "gmail", "accountId": "acc-mail", "contactId": "con-mia", "displayName": "mail", "referenceId": "mail",
            "labelIds": [], "isSpam": false, "createdAt": at("01-01T00:00"), "updatedAt": at("01-01T00:00"), "emailSubject": subject,
        });
        database.import("shop", &[line("conversation", talk)]);
    };
    api.post("/contacts", json!({"firstName": "Before"})).send().ok();
    let database = server.kill();
    rename(&database, "Cracked saucer");
    let server = Server::start(database);
    let api = server.api("shop", &ALL_SCOPES);
    assert_eq!(listed(&api, json!({"search": "before"})).len(), 1);
    if !REV_A {
        messages(&api, "saucer").lists(&["letter"]);
        messages(&api, "teapot").lists(&[]);
    }
    let database = server.kill();
    std::fs::remove_dir_all(database.index_folder()).expect("the index is there");
    let server = Server::start(database);
    let api = server.api("shop", &ALL_SCOPES);
    assert_eq!(listed(&api, json!({"search": "before"})).len(), 1);
    let database = server.kill();
    let printed = database.run(&["reindex"]);
    assert!(printed.starts_with("indexed 23 records"), "{printed}");
    let server = Server::start(database);
    assert_eq!(listed(&server.api("shop", &ALL_SCOPES), json!({"search": "สมชาย"})), ["con-som"]);
    let complaint = server.database.fails(&["reindex"]);
    assert!(complaint.contains("in use"), "{complaint}");
}

//! Tests of limits that the API's specification does not have: the lengths of texts, the requests per second, the numbers of webhooks and
//! keys of a store, and the bytes of responses that a client has not read yet.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    REV_A,
    client::Answer,
    harness::{ALL_SCOPES, Database},
    settings::SettingsFixture,
    writes::WriteFixture,
};

const KIB: usize = 1024;
const MOST: usize = 64 * KIB;

/// Returns a text of this many bytes, mostly of Thai letters with three bytes each.
fn thai(bytes: usize) -> String {
    "ก".repeat(bytes / 3) + &"x".repeat(bytes % 3)
}

#[test]
fn a_comment_has_at_most_64_kib_of_utf_8() {
    let shop = WriteFixture::open();
    shop.comment("conv-free", &thai(MOST)).ok();
    shop.assert_unchanged(|| shop.comment("conv-free", &thai(MOST + 1)).refuses("body.text"));
    assert_eq!(shop.comments("conv-free")[0]["noteData"]["text"], thai(MOST));
}

#[test]
fn a_field_value_has_at_most_64_kib_of_utf_8() {
    let shop = WriteFixture::open();
    shop.set("t-set", "f-notes", json!(thai(MOST))).ok();
    shop.set_contact("con-new", "c-notes", json!(thai(MOST))).ok();
    shop.close(json!({"ticketId": "t-free", "ticketFields": {"f-notes": thai(MOST)}})).ok();
    let several = json!([format!("x{}", thai(40 * KIB)), format!("x{}", thai(30 * KIB))]);
    shop.assert_unchanged(|| {
        shop.set("t-set", "f-notes", json!(thai(MOST + 1))).refuses("body.newValue");
        shop.set("t-set", "f-texts", several.clone()).refuses("body.newValue");
        shop.set_contact("con-new", "c-notes", json!(thai(MOST + 1))).refuses("body.value");
        let closing = json!({"ticketId": "t-set", "ticketFields": {"f-notes": thai(MOST + 1)}});
        shop.close(closing).refuses("body.ticketFields.f-notes");
    });
}

#[test]
fn outgoing_texts_have_a_length_limit_where_the_contract_sets_none() {
    let shop = WriteFixture::channels();
    if REV_A {
        shop.text("conv-web", &thai(MOST)).ok();
        shop.text("conv-web", &thai(MOST + 1)).refuses("body.text");
        return;
    }
    let mail = |more: Value| {
        let mut body = json!({"accountId": "acc-mail", "to": [{"email": "a@example.com"}], "text": "x"});
        body.as_object_mut().into_iter().for_each(|body| body.extend(more.as_object().cloned().unwrap_or_default()));
        shop.post("/messages/email/new", body).send()
    };
    mail(json!({"subject": thai(MOST), "text": thai(500 * KIB), "html": thai(300 * KIB)})).ok();
    mail(json!({"subject": thai(MOST + 1)})).refuses("body.subject");
    mail(json!({"cc": [{"email": "a@example.com", "name": thai(MOST + 1)}]})).refuses("body.cc[0].name");
    // The template `tpl-pair` contains its first variable twice. So the message has more than twice as many bytes as the variable.
    let template = |bytes: usize| {
        let variables = json!([thai(bytes), "x"]);
        shop.post("/messages/template", json!({"conversationId": "conv-wa", "templateId": "tpl-pair", "variables": variables})).send()
    };
    template(30 * KIB).ok();
    template(40 * KIB).refuses("body.variables");
    template(1000 * KIB).refuses("body.variables");
}

/// A regular expression that is slow on a long text: a match may begin at any character, and many parts of the text almost match.
const SLOW: &str = r"(\w{1,50}[\w ]{1,50}){1,2}!$";

#[test]
fn a_slow_field_pattern_does_not_delay_other_writes() {
    let mut lines = crate::fixture::write_store();
    let field = lines.iter_mut().find(|line| line["record"]["id"] == "f-code").expect("a field");
    field["record"]["regex"] = json!(SLOW);
    let shop = WriteFixture::with(&[("desk", lines)]);
    let slow = || shop.set("t-set", "f-code", json!("a ".repeat(MOST / 2))).refuses("body.newValue");
    slow();
    let worst = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..4).map(|_| scope.spawn(slow)).collect();
        let mut worst = Duration::ZERO;
        while callers.iter().any(|caller| !caller.is_finished()) {
            let begun = Instant::now();
            shop.comment("conv-free", "meanwhile").ok();
            worst = worst.max(begun.elapsed());
        }
        worst
    });
    assert!(worst < Duration::from_secs(1), "a comment took {worst:?}");
}

/// Repeats a request until the response is a 429, at most `attempts` times. Checks the rate limit headers of the 429. Returns its error
/// message.
#[track_caller]
fn limited(attempts: usize, ask: impl Fn() -> Answer) -> String {
    let refused = (0..attempts).map(|_| ask()).find(|answer| answer.status == 429);
    let refused = refused.unwrap_or_else(|| panic!("none of {attempts} met a limit"));
    let said = ["retry-after", "ratelimit", "ratelimit-policy"].map(|name| refused.header(name).unwrap_or_default().to_owned());
    let [seconds, left, policy] = said;
    let name = left.split(';').next().unwrap_or_default().to_owned();
    assert_eq!(left, format!("{name};r=0;t={seconds}"), "{}", refused.described());
    assert!(["\"key\"", "\"store\"", "\"address\""].contains(&name.as_str()), "{name}");
    assert!(policy.starts_with(&format!("{name};q=")) && policy.ends_with(";w=1"), "{policy}");
    refused.fails(429)
}

#[test]
fn a_429_names_the_limit_that_was_reached() {
    let fixture = SettingsFixture::with(&[("COUNTERPART_RATE_LIMIT", "2/s"), ("COUNTERPART_STORE_RATE_LIMIT", "5/s")]);
    let shop = &fixture.shop;
    let message = limited(40, || shop.api.get("/labels").exchange());
    assert!(message.starts_with("`x-api-key` has used up its rate limit of 2 requests a second"), "{message}");
    let keys: Vec<_> = (0..6).map(|_| shop.server.api("desk", &ALL_SCOPES)).collect();
    let beside = shop.server.api("two", &ALL_SCOPES);
    let turn = std::cell::Cell::new(0);
    let message = limited(200, || {
        turn.set(turn.get() + 1);
        keys[turn.get() % keys.len()].get("/labels").exchange()
    });
    assert!(message.contains("belongs to a store") && message.contains("5 requests a second"), "{message}");
    beside.get("/labels").send().ok();
    let unknown = shop.api.with_key("cp_nobody");
    let message = limited(40, || unknown.get("/labels").exchange());
    assert!(message.contains("the address of this request") && message.contains("2 refused keys"), "{message}");
    // Requests with unknown keys from the same address do not reduce the rate limit of a valid key.
    beside.get("/labels").send().ok();
}

#[test]
fn unknown_tokens_are_limited_by_their_address() {
    let fixture = SettingsFixture::with(&[("COUNTERPART_RATE_LIMIT", "1/s")]);
    // `sendLink` is left out, since it has separate limits.
    for operation in crate::contract::settings(&fixture.api).operations().into_iter().filter(|operation| operation.id != "sendLink") {
        let message = limited(20, || {
            let call = fixture.call_as("cps_nobody", &operation.method, &operation.path);
            if operation.id == "openSession" { call.json(json!({"link": "cps_nobody"})).exchange() } else { call.exchange() }
        });
        assert!(message.contains("refused keys, sessions or tokens"), "{message}");
    }
    fixture.get("/keys").send().ok();
}

#[test]
fn a_store_has_at_most_the_configured_numbers_of_webhooks_and_keys() {
    let fixture = SettingsFixture::with(&[("COUNTERPART_MAX_WEBHOOKS", "2"), ("COUNTERPART_MAX_KEYS", "3")]);
    let hook = || fixture.post("/webhooks", json!({"url": "https://example.com/"}));
    let key = || fixture.post("/keys", json!({"name": "x", "scopes": ["labels:read"]}));
    let first = hook().ok()["webhook"]["id"].clone();
    hook().ok();
    // The store already had one key, so two more keys reach its limit of three.
    key().ok();
    key().ok();
    let before = fixture.changes();
    let message = hook().fails(409);
    assert!(message.contains("2 webhooks") && message.contains("--max-webhooks"), "{message}");
    let message = key().fails(409);
    assert!(message.contains("3 keys") && message.contains("--max-keys"), "{message}");
    assert_eq!(fixture.changes(), before);
    fixture.call("DELETE", "/webhooks").query("webhookId", first.as_str().unwrap_or_default()).send().ok();
    hook().ok();
}

#[test]
fn the_command_line_enforces_the_configured_numbers_of_webhooks_and_keys() {
    let database = Database::with(&[("shop", vec![])]);
    let arguments = ["key", "create", "--store", "shop", "--name", "x", "--scopes", "labels:read", "--max-keys", "1"];
    database.run(&arguments);
    assert!(database.fails(&arguments).contains("--max-keys"));
    let arguments = ["webhook", "create", "--store", "shop", "--url", "https://example.com/", "--max-webhooks", "1"];
    database.run(&arguments);
    assert!(database.fails(&arguments).contains("--max-webhooks"));
}

/// The largest page size in the API revision under test (A, the older one, or B).
const LARGEST_PAGE: usize = if REV_A { 50 } else { 100 };
/// How many pages fit into the limit of 32 MiB of unread responses that a key may have. Each page has [`LARGEST_PAGE`] comments of 64 KiB.
const PAGES_UNDER_WAY: usize = if REV_A { 10 } else { 5 };

/// Opens connections, requests a page of long comments on each, and reads only the first bytes of each response. Returns the connections,
/// each with these bytes, such as `HTTP/1.1 200`.
fn unread_responses(api: &crate::client::Api, connections: usize) -> Vec<(std::net::TcpStream, String)> {
    use std::io::{Read, Write};
    let key = api.key.as_deref().unwrap_or_default();
    let path = format!("/v1/messages/internal-comments?conversationId=conv-free&pageSize={LARGEST_PAGE}");
    let head = format!("GET {path} HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\n\r\n");
    let asked = (0..connections).map(|_| {
        let mut stream = std::net::TcpStream::connect(&api.address).expect("the server listens");
        stream.write_all(head.as_bytes()).expect("the server reads the request");
        let mut status = [0; 12];
        stream.read_exact(&mut status).expect("an answer begins");
        (stream, String::from_utf8_lossy(&status).into_owned())
    });
    asked.collect()
}

#[test]
fn unread_responses_count_against_the_limit_of_their_key() {
    let shop = WriteFixture::open();
    let text = thai(MOST);
    (0..100).for_each(|_| {
        shop.comment("conv-free", &text).ok();
    });
    // The comments have the maximum length, so a page of them is large. A response counts in full against the limit of its key until the
    // client has read it.
    let sockets = unread_responses(&shop.api, 12);
    let (sent, refused): (Vec<_>, Vec<_>) = sockets.iter().map(|(_, status)| status.as_str()).partition(|status| *status == "HTTP/1.1 200");
    assert_eq!((sent.len(), refused), (PAGES_UNDER_WAY, vec!["HTTP/1.1 429"; 12 - PAGES_UNDER_WAY]));
    let page = |api: &crate::client::Api| {
        api.get("/messages/internal-comments").query("conversationId", "conv-free").query("pageSize", LARGEST_PAGE).send()
    };
    let refused = page(&shop.api);
    let message = refused.fails(429);
    assert!(message.starts_with("`x-api-key` has reached the limit of 32 MiB of answers"), "{message}");
    assert_eq!(refused.header("retry-after"), Some("1"));
    // Another key of the same store has no unread responses, so its request succeeds.
    let beside = shop.server.api("desk", &ALL_SCOPES);
    assert_eq!(page(&beside).ids().len(), LARGEST_PAGE);
    // A write with the first key gets its response in spite of the limit, because the write has already happened.
    shop.comment("conv-free", "one more").ok();
    drop(sockets);
    shop.until("the key is admitted again", || page(&shop.api).status == 200);
}

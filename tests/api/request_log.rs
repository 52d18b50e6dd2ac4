//! Tests of the request log: a server logs enough to find a request, but neither secrets nor texts that users and contacts wrote.

use serde_json::{Value, json};

use crate::{
    delivery_receiver::until,
    fixture::{ANN, write_store},
    harness::{ALL_SCOPES, Database, Server, Settings},
};

const TEXT: &str = "a text of a customer";

/// Sends requests to a server with these log settings. Asserts that the log contains neither secrets nor texts. Returns the log and the id
/// of the API key.
fn logged(settings: Settings<'_>) -> (String, String) {
    let server = Server::start_with(Database::with(&[("desk", write_store())]), settings);
    let key = server.database.key("desk", &ALL_SCOPES);
    let api = server.api_of(&key);
    let body = json!({"conversationId": "conv-wa", "text": TEXT});
    api.post("/messages/internal-comments", body).header("x-request-id", "complaint-7").send().ok();
    api.get("/conversations").query("contactId", TEXT).header("x-request-id", "complaint-8").send();
    api.anonymous().get("/users").header("x-request-id", "complaint-9").send().fails(401);
    // A separate thread of the server writes the log, so lines can appear after the response.
    until("the last request is logged", || server.log().contains("complaint-9"));
    let log = server.log();
    assert!(!log.contains(TEXT) && !log.contains("a%20text") && !log.contains("a+text"), "{log}");
    assert!(!log.contains(&key.secret) && !log.contains('\u{1b}'), "{log}");
    (log, key.id)
}

#[test]
fn a_request_is_logged_as_one_line_of_json() {
    let (log, key) = logged(&[("COUNTERPART_LOG", "info"), ("COUNTERPART_LOG_FORMAT", "json")]);
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))).collect();
    let of = |id: &str| {
        let all: Vec<&Value> = lines.iter().filter(|line| line["request_id"] == id).collect();
        assert_eq!(all.len(), 1, "{id}: {log}");
        all[0].clone()
    };
    let line = of("complaint-7");
    assert_eq!((&line["level"], &line["message"], &line["operation"]), (&json!("INFO"), &json!("answered"), &json!("addInternalComment")));
    assert_eq!((&line["path"], &line["status"]), (&json!("/v1/messages/internal-comments"), &json!(200)));
    assert_eq!((&line["store"], &line["key"], line.get("user")), (&json!("desk"), &json!(key), None));
    assert_eq!(line["key_name"], "Test");
    assert!(line["milliseconds"].as_f64().is_some_and(|time| time > 0.0), "{line}");
    assert_eq!(of("complaint-8")["operation"], "listConversations");
    let refused = of("complaint-9");
    assert_eq!((&refused["status"], refused.get("store"), refused.get("key")), (&json!(401), None, None));
}

#[test]
fn a_request_is_logged_as_a_line_of_text_without_colours() {
    let (log, key) = logged(&[("COUNTERPART_LOG", "info")]);
    let line = log.lines().find(|line| line.contains("complaint-7") && line.contains("answered")).expect("the line");
    for part in ["INFO", "answered", "operation=\"addInternalComment\"", "status=200", "store=\"desk\"", &format!("key=\"{key}\"")] {
        assert!(line.contains(part), "{part}: {line}");
    }
}

#[test]
fn slow_statements_are_logged_without_their_values() {
    let slow = |milliseconds: &'static str| {
        let settings = [("COUNTERPART_LOG", "info"), ("COUNTERPART_LOG_FORMAT", "json"), ("COUNTERPART_SLOW_STATEMENT", milliseconds)];
        let (log, _) = logged(&settings);
        let lines: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        lines.into_iter().filter(|line| line["message"] == "a slow statement").collect::<Vec<_>>()
    };
    let lines = slow("0");
    for parts in [["SELECT", "FROM conversations"], ["INSERT", "comments"]] {
        let of = |line: &&Value| line["statement"].as_str().is_some_and(|text| parts.iter().all(|part| text.contains(part)));
        let line = lines.iter().find(of).unwrap_or_else(|| panic!("{parts:?}: {lines:?}"));
        assert_eq!((&line["level"], line["milliseconds"].is_u64()), (&json!("WARN"), true), "{line}");
    }
    assert_eq!(slow("60000"), [] as [Value; 0]);
    // At the default log level the server does not log requests, but it logs slow statements. With the threshold 0, every statement is
    // slow. The request below lists webhooks; its statements run through the database library SeaORM. Their log lines must have the id of
    // the request, `slow-1`.
    let settings = [("COUNTERPART_LOG_FORMAT", "json"), ("COUNTERPART_SLOW_STATEMENT", "0")];
    let server = Server::start_with(Database::with(&[("desk", write_store())]), &settings);
    let token = server.database.run(&["settings", "token", "--store", "desk", "--user", ANN]);
    let api = server.api("desk", &ALL_SCOPES).anonymous();
    let listed =
        api.raw("GET", "/settings/v1/webhooks").header("authorization", &format!("Bearer {token}")).header("x-request-id", "slow-1");
    assert_eq!(listed.exchange().status, 200);
    let named =
        |log: &str| log.lines().any(|line| line.contains("\"slow-1\"") && line.contains("webhooks") && line.contains("a slow statement"));
    until("the list of webhooks is logged", || named(&server.log()));
}

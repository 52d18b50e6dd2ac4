//! Tests of access to the assistant tools (MCP): API keys, scopes, stores, the server's options, and the headers `host` and `origin`.

use serde_json::json;

use super::{Assistant, SENDING, SERVED};
use crate::{
    REV_A,
    fixture::{self},
    harness::{ALL_SCOPES, Database, Server},
};

fn server() -> Server {
    Server::start_with(Database::with(&[("one", fixture::one()), ("two", fixture::two())]), SENDING)
}

/// The assistant tools: the name of each, the scopes of which an API key needs at least one (empty: the tool needs no scope), and whether
/// revision A of the API (the older revision) has the tool.
const TOOLS: [(&str, &[&str], bool); 24] = [
    ("get_inbox_guide", &[], true),
    ("list_tickets", &["tickets:read"], true),
    ("get_ticket", &["tickets:read"], true),
    ("list_conversations", &["conversations:read"], true),
    ("read_thread", &["messages:read"], true),
    ("get_contact", &["contacts:read"], true),
    ("find_contacts", &["contacts:read"], true),
    ("list_contacts", &["contacts:read"], true),
    ("search_messages", &["messages:read"], false),
    ("list_fields", &["tickets:read", "contacts:read"], true),
    ("list_people", &["users:read", "teams:read"], true),
    ("list_labels", &["labels:read"], true),
    ("list_channel_accounts", &["accounts:read"], false),
    ("list_templates", &["accounts:read"], false),
    ("set_ticket_field", &["tickets:write"], true),
    ("close_ticket", &["tickets:write"], true),
    ("assign_tickets", &["tickets:write"], false),
    ("mark_read", &["conversations:write"], true),
    ("change_labels", &["conversations:write"], true),
    ("create_contact", &["contacts:write"], true),
    ("set_contact_field", &["contacts:write"], true),
    ("add_comment", &["messages:write"], true),
    ("send_message", &["messages:write"], true),
    ("start_conversation", &["messages:write"], false),
];

#[test]
fn a_key_is_offered_the_tools_of_its_scopes_and_refused_the_others() {
    let server = server();
    let all = Assistant::of(&server.api("one", &ALL_SCOPES));
    let expected: Vec<&str> = TOOLS.iter().filter(|(.., both)| *both || !REV_A).map(|(name, ..)| *name).collect();
    assert_eq!(all.names(), expected);
    for scope in ALL_SCOPES {
        let assistant = Assistant::of(&server.api("one", &[scope]));
        let offered = assistant.names();
        let granted = [scope.to_owned(), scope.replace(":write", ":read")];
        for (name, scopes, both) in TOOLS {
            if REV_A && !both {
                continue;
            }
            let allowed = scopes.is_empty() || scopes.iter().any(|scope| granted.iter().any(|granted| granted == scope));
            assert_eq!(offered.contains(&name.to_owned()), allowed, "{scope} {name}");
            if !allowed {
                let answer = assistant.message("tools/call", json!({"name": name, "arguments": {}}));
                let body: serde_json::Value = serde_json::from_str(&answer.text).expect("JSON");
                assert_eq!(answer.status, 403, "{scope} {name}: {}", answer.text);
                assert!(body["error"]["message"].as_str().is_some_and(|text| text.contains(scopes[0])), "{}", answer.text);
            }
        }
    }
}

#[test]
fn without_a_valid_key_nothing_is_answered() {
    let server = server();
    let api = server.api("one", &ALL_SCOPES);
    for caller in [api.anonymous(), api.with_key("cp_wrong")] {
        for (method, params) in
            [("tools/list", json!({})), ("server/discover", json!({})), ("tools/call", json!({"name": "get_inbox_guide"}))]
        {
            let answer = Assistant::of(&caller).message(method, params);
            assert_eq!(answer.status, 401, "{}", answer.text);
            assert!(answer.text.contains("x-api-key"), "{}", answer.text);
        }
    }
}

#[test]
fn nothing_of_another_store_is_shown() {
    let server = server();
    let one = Assistant::of(&server.api("one", &ALL_SCOPES));
    for (tool, arguments, finder) in [
        ("get_ticket", json!({"ticketId": "t-two"}), "list_tickets"),
        ("get_contact", json!({"contactId": "con-two"}), "find_contacts"),
        ("read_thread", json!({"conversationId": "conv-two"}), "list_tickets"),
        ("list_conversations", json!({"contactId": "con-two"}), "find_contacts"),
        ("list_tickets", json!({"contactId": "con-two"}), "find_contacts"),
        ("mark_read", json!({"conversationId": "conv-two"}), "list_tickets"),
        ("close_ticket", json!({"ticketId": "t-two"}), "list_tickets"),
        ("add_comment", json!({"conversationId": "conv-two", "text": "x"}), "list_tickets"),
        ("send_message", json!({"conversationId": "conv-two", "text": "x"}), "list_tickets"),
    ] {
        let text = one.fails(tool, arguments);
        assert!(text.contains(finder) && !text.contains("of two"), "{tool}: {text}");
    }
    let guide = one.call("get_inbox_guide", json!({}));
    assert!(guide["storeId"] == "one" && !guide.to_string().contains("of two"), "{guide}");
    for (tool, arguments) in [("list_tickets", json!({})), ("list_contacts", json!({})), ("list_labels", json!({"searchTerm": "of two"}))] {
        assert!(!one.call(tool, arguments).to_string().contains("of two"), "{tool}");
    }
}

#[test]
fn a_request_can_be_limited_to_reading_and_to_some_tools() {
    let server = server();
    let api = server.api("one", &ALL_SCOPES);
    let reading = Assistant::of(&api).with_header("x-mcp-readonly", "true");
    let tools = reading.tools();
    assert!(tools.iter().all(|tool| tool["annotations"]["readOnlyHint"] == true) && !tools.is_empty());
    let text = reading.fails("add_comment", json!({"conversationId": "conv-main", "text": "x"}));
    assert!(text.contains("not offered"), "{text}");
    let some = Assistant::of(&api).with_header("x-mcp-tools", "get_ticket, add_comment");
    assert_eq!(some.names(), ["get_ticket", "add_comment"]);
    some.fails("list_tickets", json!({}));
    for (name, value) in [("x-mcp-readonly", "yes"), ("x-mcp-tools", "get_ticket,nonsense")] {
        let answer = Assistant::of(&api).with_header(name, value).message("tools/list", json!({}));
        assert_eq!(answer.status, 400, "{name} {}", answer.text);
    }
}

#[test]
fn foreign_hosts_and_origins_are_refused() {
    let settings =
        [SERVED, &[("COUNTERPART_PUBLIC_URL", "https://api.example.com"), ("COUNTERPART_CORS_ORIGIN", "https://app.example.com")]].concat();
    let server = Server::start_with(Database::with(&[("one", fixture::one())]), &settings);
    let api = server.api("one", &ALL_SCOPES);
    let from = |name: &str, value: &str| Assistant::of(&api).with_header(name, value).message("tools/list", json!({})).status;
    for (origin, status) in [
        ("https://api.example.com", 200),
        ("https://app.example.com", 200),
        ("https://evil.example", 403),
        ("null", 403),
        ("http://app.example.com", 403),
    ] {
        assert_eq!(from("origin", origin), status, "{origin}");
    }
    // The suite's HTTP client adds its own `host` header, and the server refuses a request with two `host` headers. So this test writes the
    // request itself.
    let call = |host: &str| {
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: {host}\r\nx-api-key: {}\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: 46\r\n\r\n{}",
            api.key.clone().unwrap_or_default(),
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#
        );
        let mut stream = std::net::TcpStream::connect(&api.address).expect("a connection");
        std::io::Write::write_all(&mut stream, request.as_bytes()).expect("sent");
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).expect("an answer");
        answer.split(' ').nth(1).map(str::to_owned).unwrap_or_default()
    };
    for (host, status) in [("api.example.com", "200"), ("127.0.0.1", "200"), ("localhost:1", "200"), ("evil.example", "403")] {
        assert_eq!(call(host), status, "{host}");
    }
}

#[test]
fn a_server_without_the_mcp_option_has_no_tools() {
    let answer = Assistant::of(crate::harness::one()).message("tools/list", json!({}));
    assert_eq!(answer.status, 404, "{}", answer.text);
}

#[test]
fn tool_calls_count_against_the_rate_limit() {
    let settings = [SERVED, &[("COUNTERPART_RATE_LIMIT", "2/s")]].concat();
    let server = Server::start_with(Database::with(&[("one", fixture::one())]), &settings);
    let assistant = Assistant::of(&server.api("one", &ALL_SCOPES));
    for (method, params) in [
        ("tools/list", json!({})),
        ("tools/call", json!({"name": "list_labels", "arguments": {}})),
        ("tools/call", json!({"name": "nonsense", "arguments": {}})),
        ("tools/call", json!({"name": "send_message", "arguments": {"conversationId": "nope", "text": "x"}})),
    ] {
        let answers: Vec<_> = (0..20).map(|_| assistant.message(method, params.clone())).collect();
        assert!(answers.iter().any(|answer| answer.status == 429 || answer.text.contains("Repeat the call after")), "{method} {params}");
    }
}

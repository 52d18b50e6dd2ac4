//! Tests that an assistant tool returns the same data as the HTTP operation that it executes, truncated and cleaned as documented.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Assistant, SENDING};
use crate::{
    REV_A,
    client::Api,
    fixture::{self, ANN, at},
    harness::{ALL_SCOPES, Database, Server},
    openapi_documents::routes,
    scopes::good_request,
};

/// Returns a tool call for each operation except `listInternalComments`: the tool, its arguments, and the id of the operation that it
/// executes. The arguments ask for the same data as the HTTP request that [`good_request`] returns.
fn calls() -> Vec<(&'static str, Value, &'static str)> {
    let mut calls = vec![
        ("get_ticket", json!({"ticketId": "t-first"}), "getTicket"),
        ("list_tickets", json!({"pageSize": 20}), "listTickets"),
        ("list_fields", json!({"kind": "ticket"}), "listTicketFields"),
        ("list_fields", json!({"kind": "contact"}), "listContactFields"),
        ("list_conversations", json!({"conversationId": "conv-main", "pageSize": 20}), "listConversations"),
        ("get_contact", json!({"contactId": "con-mia"}), "getContact"),
        ("list_contacts", json!({"pageSize": 20}), "listContacts"),
        ("read_thread", json!({"conversationId": "conv-main", "pageSize": 5}), "listMessages"),
        ("list_people", json!({"kind": "users"}), "listUsers"),
        ("list_people", json!({"kind": "teams", "pageSize": 20}), "listTeams"),
        ("list_labels", json!({"pageSize": 20}), "listLabels"),
        ("set_ticket_field", json!({"ticketId": "t-third", "fieldId": "f-text", "value": "new"}), "updateTicketField"),
        ("close_ticket", json!({"ticketId": "t-quiet"}), "closeTicket"),
        ("mark_read", json!({"conversationId": "conv-main"}), "markConversationRead"),
        ("change_labels", json!({"conversationId": "conv-main", "add": ["lab-wide"]}), "updateConversationLabels"),
        ("create_contact", json!({"firstName": "Ada", "email": "ada@example.com"}), "createContact"),
        (
            "set_contact_field",
            json!({"contactId": "con-mia", "fieldId": "c-born", "value": "2000-02-29", "updatedAt": at("04-30T00:00")}),
            "updateContactField",
        ),
        ("add_comment", json!({"conversationId": "conv-main", "text": "Note"}), "addInternalComment"),
        ("send_message", json!({"conversationId": "conv-main", "text": "Hello"}), "sendTextMessage"),
    ];
    if !REV_A {
        calls.extend([
            ("search_messages", json!({"query": "hello"}), "searchMessages"),
            ("find_contacts", json!({"query": "mia"}), "searchContacts"),
            ("list_channel_accounts", json!({"pageSize": 20}), "listAccounts"),
            ("list_templates", json!({"accountId": "acc-wa"}), "listWhatsappTemplates"),
            ("assign_tickets", json!({"items": [{"ticketId": "t-third", "assigneeUserId": ANN}]}), "assignTickets"),
            ("start_conversation", json!({"accountId": "acc-mail", "to": ["eva@example.com"], "text": "Hello"}), "sendEmailNew"),
            (
                "start_conversation",
                json!({"accountId": "acc-wa", "phoneNumber": "+66812340000", "templateId": "tpl-001"}),
                "sendTemplateToPhone",
            ),
            ("send_message", json!({"conversationId": "conv-mail", "to": ["eva@example.com"], "text": "Hello"}), "sendEmailReply"),
            ("send_message", json!({"conversationId": "conv-wa", "templateId": "tpl-001"}), "sendTemplateReply"),
        ]);
    }
    calls
}

/// Replaces generated ids and times by constants. The ids and times differ between the two servers of the test: the assistant uses one
/// server, and the HTTP requests go to the other one.
fn settled(value: &Value) -> Value {
    match value {
        Value::String(text) if text.len() == 24 && text.ends_with('Z') && text.starts_with("202") && *text > at("12-31T00:00") => {
            json!("now")
        }
        Value::String(text) if text.len() == 36 && text.as_bytes()[14] == b'7' => json!("id"),
        Value::Array(items) => items.iter().map(settled).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, member)| (name.clone(), settled(member))).collect::<serde_json::Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

/// Removes hidden characters, and truncates texts to `chars` characters, as the documentation of the tools says.
fn cleaned(value: &Value, chars: usize) -> Value {
    match value {
        Value::String(text) => {
            let seen = |c: &char| !(c.is_control() && !"\n\t".contains(*c) || super::prompt_injection::HIDDEN.contains(*c));
            let text: String = text.chars().filter(seen).collect();
            let count = text.chars().count();
            if count > chars {
                format!("{} … [cut after {chars} of {count} characters]", text.chars().take(chars).collect::<String>()).into()
            } else {
                text.into()
            }
        }
        Value::Array(items) => items.iter().map(|item| cleaned(item, chars)).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, member)| (name.clone(), cleaned(member, chars))).collect::<serde_json::Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

fn server() -> (Server, Api) {
    let server = Server::start_with(Database::with(&[("one", fixture::one())]), SENDING);
    let api = server.api("one", &ALL_SCOPES);
    (server, api)
}

#[test]
fn every_operation_gives_the_same_data_by_tool_and_over_http() {
    let ((_first, by_tool), (_second, over_http)) = (server(), server());
    let assistant = Assistant::of(&by_tool);
    let (mut reached, mut largest) = (BTreeSet::new(), 0);
    for (tool, arguments, operation) in calls() {
        let result = assistant.call(tool, arguments);
        largest = largest.max(result.to_string().len());
        let mut request = good_request(&over_http, operation);
        if operation == "getTicket" {
            request = request.query("expand", "account,conversation,assignee,handledBy");
        }
        let answer = request.send();
        let data = answer.ok();
        let got = if data.is_array() { &result["items"] } else { &result };
        if result["status"] == "sent" {
            assert_eq!(result["message"], data["message"], "{operation}");
        } else {
            assert_eq!(settled(got), settled(&cleaned(&data, if tool == "read_thread" { 2_000 } else { usize::MAX })), "{operation}");
        }
        assert_eq!(result.get("nextCursor").is_some(), answer.header("x-pagination-next-cursor").is_some(), "{operation}");
        reached.insert(operation);
    }
    let with_comments = assistant.call("read_thread", json!({"conversationId": "conv-main", "pageSize": 5, "includeComments": true}));
    let comments = good_request(&over_http, "listInternalComments").query("pageSize", 10).send().ok();
    // On both servers, the calls above have added the same comment, so the lists are equal.
    assert_eq!(settled(&with_comments["comments"]), settled(&cleaned(&comments, 2_000)));
    reached.insert("listInternalComments");
    let all: BTreeSet<String> = routes().into_iter().map(|route| route.operation).collect();
    assert_eq!(reached.into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), all);
    println!("the largest result has {largest} bytes");
}

#[test]
fn every_result_fits_its_schema() {
    let (_server, api) = server();
    let assistant = Assistant::of(&api);
    let tools = assistant.tools();
    let guide = ("get_inbox_guide", json!({}), "");
    for (name, arguments, _) in calls().into_iter().chain([guide]) {
        let tool = tools.iter().find(|tool| tool["name"] == name).expect("the tool");
        let valid = jsonschema::draft202012::new(&tool["outputSchema"]).expect("a schema");
        let result = assistant.call(name, arguments.clone());
        assert!(valid.is_valid(&result), "{name}: {:?}", valid.iter_errors(&result).map(|error| error.to_string()).collect::<Vec<_>>());
        let input = jsonschema::draft202012::new(&tool["inputSchema"]).expect("a schema");
        assert!(input.is_valid(&arguments), "{name}");
    }
}

#[test]
fn pages_that_are_cut_to_their_limit_have_every_record_once() {
    let mut lines = fixture::channels();
    for i in 0..40 {
        let text = "ก".repeat(300 + 97 * i);
        lines.push(fixture::line(
            "comment",
            fixture::comment(&format!("n-{i:02}"), "conv-web", ANN, &at(&format!("06-01T09:{i:02}")), &text),
        ));
    }
    let server = Server::start_with(Database::with(&[("shop", lines)]), SENDING);
    let assistant = Assistant::of(&server.api("shop", &ALL_SCOPES));
    let (mut walked, mut arguments, mut noted) = (Vec::new(), json!({"conversationId": "conv-web", "includeComments": true}), false);
    loop {
        let page = assistant.call("read_thread", arguments.clone());
        noted |= page["comments"].as_array().is_some_and(|comments| comments.len() < 10);
        walked.extend(page["comments"].as_array().expect("comments").iter().map(|comment| comment["id"].clone()));
        let Some(cursor) = page.get("commentsNextCursor") else { break };
        arguments["commentsCursor"] = cursor.clone();
    }
    let expected: Vec<Value> = (0..40).rev().map(|i| json!(format!("n-{i:02}"))).collect();
    assert!(noted && walked == expected, "{walked:?}");
}

#[test]
fn paging_by_cursor_returns_every_record_once() {
    let (_server, api) = server();
    let assistant = Assistant::of(&api);
    let mut walked = Vec::new();
    let mut arguments = json!({"pageSize": 3});
    loop {
        let page = assistant.call("list_contacts", arguments.clone());
        walked.extend(page["items"].as_array().expect("items").iter().map(|contact| contact["id"].clone()));
        let Some(cursor) = page.get("nextCursor") else { break };
        arguments["cursor"] = cursor.clone();
    }
    let whole = api.post("/contacts/list", json!({})).query("pageSize", 50).send().ids();
    assert_eq!(walked, whole.into_iter().map(Value::from).collect::<Vec<_>>());
}

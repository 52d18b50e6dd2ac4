//! Tests of the runbook (docs/runbook.md): runs its commands as printed, and checks that their output shows the cause of a complaint.

use std::process::Command;

use serde_json::{Value, json};

use crate::{
    delivery_receiver::{Endpoint, PRIVATE, until},
    fixture::{ANN, channels},
    harness::{ALL_SCOPES, Database, Server},
};

const PAGE: &str = include_str!("../../docs/runbook.md");

/// Returns the blocks of shell commands in a section of the runbook.
fn commands(section: &str) -> Vec<&'static str> {
    let body = PAGE.split("\n## ").find(|part| part.starts_with(section)).expect("the section");
    body.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

/// Runs shell commands in the folder with the database and the log of a server. First replaces the placeholders for ids, such as
/// `MESSAGE-ID`. Returns the output of the commands.
fn run(server: &Server, commands: &str, ids: &[(&str, &str)]) -> String {
    let mut script = commands.replace("127.0.0.1:8080", &server.address);
    for (name, id) in ids {
        script = script.replace(name, id);
    }
    let folder = server.database.folder();
    let programs = folder.join("bin");
    std::fs::create_dir_all(&programs).expect("a folder");
    _ = std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_counterpart"), programs.join("counterpart"));
    _ = std::os::unix::fs::symlink(folder.join("server.log"), folder.join("counterpart.log"));
    let path = format!("{}:/usr/bin:/bin", programs.display());
    let mut shell = Command::new("bash");
    shell.args(["-euo", "pipefail", "-c", &script]).current_dir(folder).env("PATH", path).env("DATABASE_URL", &server.database.url);
    let output = shell.output().expect("bash");
    let (printed, complaint) = (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script}\n{printed}{complaint}");
    printed
}

fn lines(printed: &str) -> Vec<Value> {
    printed.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))).collect()
}

#[test]
fn the_runbook_commands_find_the_cause_of_each_complaint() {
    let database = Database::with(&[("shop", channels())]);
    let refusing = Endpoint::replying(|_| ("422 No", json!({"error": "the number is blocked"}).to_string()));
    let failing = Endpoint::replying(|_| ("500 Internal Server Error", String::new()));
    database.run(&["bridge", "set", "--store", "shop", "--account", "acc-line", "--url", &refusing.url()]);
    let hook = database.run(&["webhook", "create", "--store", "shop", "--url", &failing.url(), "--json"]);
    let hook: Value = serde_json::from_str(&hook).expect("json");
    let log = [("COUNTERPART_LOG", "info"), ("COUNTERPART_LOG_FORMAT", "json")];
    let server = Server::start_with(database, &[&PRIVATE[1..], &log].concat());
    let api = server.api("shop", &ALL_SCOPES);
    let send = |conversation: &str, request: &str| {
        let body = json!({"conversationId": conversation, "text": "a text of an agent"});
        api.post("/messages", body).header("x-request-id", request).send().ok();
    };
    let steps = commands("\"My message never reached the customer\"");
    // Runs the first command of the section, which finds the log lines of a request. One of these lines names the message.
    let message_of = |request: &str| -> String {
        let ids = [("REQUEST-ID", request)];
        until("the request is logged", || server.log().contains(&format!("\"request_id\":\"{request}\",\"operation\"")));
        let found = lines(&run(&server, steps[0], &ids));
        let line = |message: &str| found.iter().find(|line| line["message"] == message).unwrap_or_else(|| panic!("{message}: {found:?}"));
        assert_eq!((&line("answered")["status"], &line("answered")["store"]), (&json!(200), &json!("shop")));
        line("sending a message")["message_id"].as_str().expect("an id").to_owned()
    };

    send("conv-line", "complaint-1");
    let message = message_of("complaint-1");
    until("it was given up", || server.database.run(&["message", "undelivered", "--store", "shop"]).contains("\"failed\""));
    let cause = lines(&run(&server, steps[1], &[("MESSAGE-ID", &message)]));
    assert_eq!((cause.len(), &cause[0]["reason"]), (1, &json!("the bridge answered 422: the number is blocked")), "{cause:?}");
    until("it is counted", || run(&server, steps[2], &[]).contains("outcome=\"given_up\"} 1"));

    // The second complaint: a message through the widget channel is sent immediately, but its event does not reach the webhook.
    send("conv-web", "complaint-2");
    let message = message_of("complaint-2");
    let ids = [("MESSAGE-ID", message.as_str()), ("WEBHOOK-ID", hook["id"].as_str().expect("an id"))];
    let steps = commands("\"My system never heard of it\"");
    let event = lines(&run(&server, steps[0], &ids));
    assert_eq!((event.len(), &event[0]["type"]), (1, &json!("message.sent")), "{event:?}");
    assert_eq!(lines(&run(&server, steps[1], &ids))[0]["enabled"], true);
    until("it was tried", || {
        !failing.seen().is_empty() && server.database.run(&["webhook", "log", "--store", "shop", "--id", ids[1].1]).contains("500")
    });
    let attempts = run(&server, steps[2], &ids);
    assert!(attempts.contains("500"), "{attempts}");

    let came =
        json!({"accountId": "acc-line", "referenceId": "thread-9", "externalId": "wamid[1].x", "sender": {"id": "u"}, "text": "hello"});
    let database = &server.database;
    let manager = database.run(&["settings", "token", "--store", "shop", "--user", ANN]);
    let fixture = api.anonymous().raw("POST", "/settings/v1/messages").header("authorization", &format!("Bearer {manager}")).json(came);
    assert_eq!(fixture.exchange().status, 200);
    let step = commands("\"The customer wrote, and it is not in the inbox\"")[0];
    until("it is logged", || server.log().contains("a message came"));
    let found = lines(&run(&server, step, &[("EXTERNAL-ID", "wamid[1].x")]));
    assert_eq!((found.len(), &found[0]["message"]), (1, &json!("a message came")), "{found:?}");
}

#[test]
fn the_runbook_mentions_every_alert() {
    let alerts = include_str!("../../docs/prometheus/alerts.yaml");
    let named: Vec<&str> = alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(named.len() > 5, "{named:?}");
    let missing: Vec<_> = named.iter().filter(|name| !PAGE.contains(**name)).collect();
    assert!(missing.is_empty(), "docs/runbook.md does not mention the alerts {missing:?}");
}

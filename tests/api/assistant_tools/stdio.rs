//! Tests of `counterpart mcp`, which serves the assistant tools over standard input and output: directly on the database, and as a relay to
//! a server.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use serde_json::{Value, json};

use super::{SENDING, SERVED};
use crate::{fixture::channels, harness::Settings, writes::WriteFixture};

/// A running `counterpart mcp`, and a client of the MCP revisions in which a session begins with the request `initialize`.
struct Client {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: i64,
    /// The user's answer to each question of the server: `accept` or `decline`. `questions` records the questions.
    answer: &'static str,
    questions: Vec<String>,
}

impl Client {
    fn start(shop: &WriteFixture, arguments: &[&str], capabilities: Value) -> Self {
        Self::with_key(shop, arguments, capabilities, &shop.key.secret)
    }

    fn with_key(shop: &WriteFixture, arguments: &[&str], capabilities: Value, key: &str) -> Self {
        let mut command = shop.server.database.command();
        let command = command.arg("mcp").args(arguments).env("COUNTERPART_API_KEY", key);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let (input, output) = (process.stdin.take(), BufReader::new(process.stdout.take().expect("a pipe")));
        let mut client = Self { process, input, output, next: 0, answer: "accept", questions: Vec::new() };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": {"name": "suite", "version": "1"}});
        let welcome = client.request("initialize", hello);
        assert_eq!(welcome["result"]["protocolVersion"], "2025-06-18", "{welcome}");
        assert!(welcome["result"]["instructions"].as_str().is_some_and(|text| text.contains("Untrusted")), "{welcome}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("open");
        writeln!(input, "{message}").expect("written");
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).expect("a line"), 0, "the program ended");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message["method"] == "elicitation/create" {
                self.questions.push(message["params"]["message"].as_str().unwrap_or_default().to_owned());
                let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": {"action": self.answer, "content": {}}});
                self.send(&reply);
            } else if message["id"] == self.next {
                return message;
            }
        }
    }

    fn names(&mut self) -> Vec<String> {
        let listed = self.request("tools/list", json!({}));
        listed["result"]["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect()
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))["result"].clone()
    }

    /// Closes the standard input of the program. Asserts that the program then ends without an error.
    fn end(mut self) {
        drop(self.input.take());
        assert!(self.process.wait().expect("it ends").success());
    }
}

fn shop(settings: Settings<'_>) -> WriteFixture {
    WriteFixture::with_settings(&[("shop", channels())], settings)
}

fn to_web(text: &str) -> Value {
    json!({"conversationId": "conv-web", "text": text})
}

/// Tests the options `--write`, `--allow-send` and `--tools` of `counterpart mcp`. `target` has the arguments that name a server; it is
/// empty if the command uses the database directly.
fn switches(shop: &WriteFixture, target: &[&str]) {
    let with =
        |more: &[&'static str]| target.iter().copied().map(str::to_owned).chain(more.iter().map(|it| (*it).to_owned())).collect::<Vec<_>>();
    let start = |more: &[&'static str], capabilities: Value| {
        let arguments = with(more);
        Client::start(shop, &arguments.iter().map(String::as_str).collect::<Vec<_>>(), capabilities)
    };
    let texts = || shop.messages("conv-web").len();
    let mut reading = start(&[], json!({}));
    let names = reading.names();
    assert!(names.contains(&"read_thread".to_owned()) && !names.contains(&"add_comment".to_owned()), "{names:?}");
    let refused = reading.call("send_message", to_web("x"));
    assert_eq!(refused["isError"], true, "{refused}");
    let thread = reading.call("read_thread", json!({"conversationId": "conv-web"}));
    assert_eq!(thread["structuredContent"]["items"].as_array().map(Vec::len), Some(texts()), "{thread}");
    reading.end();

    let before = texts();
    let mut writing = start(&["--write"], json!({"elicitation": {}}));
    assert_eq!(writing.call("add_comment", to_web("Note"))["isError"], false);
    let draft = writing.call("send_message", to_web("Draft"));
    assert_eq!(draft["structuredContent"]["status"], "draft", "{draft}");
    assert_eq!((texts(), writing.questions.len()), (before, 0));
    writing.end();

    let mut sending = start(&["--allow-send"], json!({"elicitation": {}}));
    sending.answer = "decline";
    assert_eq!(sending.call("send_message", to_web("Asked"))["structuredContent"]["status"], "declined");
    assert_eq!((texts(), sending.questions.len()), (before, 1));
    sending.answer = "accept";
    let sent = sending.call("send_message", to_web("Asked"));
    assert_eq!(sent["structuredContent"]["status"], "sent", "{sent}");
    assert!(sending.questions.iter().all(|question| question.contains("Asked") && question.contains("conv-web")));
    assert_eq!(texts(), before + 1);
    sending.end();

    let mut mute = start(&["--allow-send"], json!({}));
    assert_eq!(mute.call("send_message", to_web("Unasked"))["structuredContent"]["status"], "sent");
    assert_eq!(texts(), before + 2);
    mute.end();

    let mut some = start(&["--write", "--tools", "get_ticket,add_comment"], json!({}));
    assert_eq!(some.names(), ["get_ticket", "add_comment"]);
    some.end();
}

#[test]
fn the_mcp_switches_set_the_permissions_on_a_database() {
    switches(&shop(&[]), &[]);
}

#[test]
fn the_mcp_switches_set_the_permissions_through_a_server() {
    let shop = shop(SENDING);
    let url = format!("http://{}", shop.server.address);
    switches(&shop, &["--url", &url]);
}

#[test]
fn a_server_that_permits_no_sends_makes_drafts_whatever_the_command_says() {
    let shop = shop(SERVED);
    let url = format!("http://{}", shop.server.address);
    let mut client = Client::start(&shop, &["--url", &url, "--allow-send"], json!({"elicitation": {}}));
    assert_eq!(client.call("send_message", to_web("x"))["structuredContent"]["status"], "draft");
    client.end();
}

#[test]
fn the_mcp_command_reports_missing_and_invalid_settings() {
    let shop = shop(&[]);
    let url = format!("http://{}", shop.server.address);
    let failed = |arguments: &[&str], key: &str| {
        let mut command = shop.server.database.command();
        let output = command.args(arguments).env("COUNTERPART_API_KEY", key).stdin(Stdio::null()).output().expect("it runs");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for (arguments, key, word) in [
        (&["mcp"][..], "", "COUNTERPART_API_KEY"),
        (&["mcp"], "cp_wrong", "not valid"),
        (&["mcp", "--url", &url], &shop.key.secret, "serve --mcp"),
        (&["mcp", "--url", "http://127.0.0.1:1"], &shop.key.secret, "cannot be reached"),
        (&["mcp", "--tools", "nonsense"], &shop.key.secret, "list_tickets"),
    ] {
        let said = failed(arguments, key);
        assert!(said.contains(word), "{arguments:?}: {said}");
    }
}

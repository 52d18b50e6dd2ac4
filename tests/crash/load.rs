//! Load generator: writers that send writes until the server is killed, and log each write with its outcome.

use std::{
    io::{ErrorKind, Read, Write as _},
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    STORE,
    client::{Api, Call},
    contract,
    harness::BINARY,
    model::ConversationModel,
};

/// A kind of write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    SetField,
    Comment,
    Contact,
    Labels,
    Close,
    /// Receives inbound messages with the command `message receive`, a separate process. All other operations are API requests.
    Receive,
    Send,
}

/// The operations from which the writers choose at random, each with its weight. An operation of weight 0 is never chosen.
pub const OPERATIONS: [(Operation, usize); 7] = [
    (Operation::SetField, 6),
    (Operation::Comment, 6),
    (Operation::Contact, 5),
    (Operation::Labels, 5),
    (Operation::Close, 3),
    (Operation::Receive, 1),
    (Operation::Send, 6),
];

/// The number of labels that the writers use. A conversation has one of these labels at a time; a write replaces that label by the next
/// one.
pub const LABELS: usize = 5;

/// One write, and what is known of its outcome.
#[derive(Clone, Debug)]
pub struct Write {
    pub operation: Operation,
    /// A value in the body that is unique among the writes of the run. For [`Operation::Labels`], the id of the label that is added.
    pub value: String,
    pub body: Value,
    pub key: Option<String>,
    /// `data` of the HTTP response, or the line that `message receive` printed. `None`: the writer got no response, so the outcome is
    /// unknown.
    pub answer: Option<Value>,
    /// Whether the server may have received the write.
    pub sent: bool,
}

impl Write {
    fn call(&self, api: &Api) -> Call {
        let (method, path) = match self.operation {
            Operation::SetField => ("PATCH", "/tickets/field-values"),
            Operation::Comment => ("POST", "/messages/internal-comments"),
            Operation::Contact => ("POST", "/contacts"),
            Operation::Labels => ("PATCH", "/conversations/labels"),
            Operation::Close => ("POST", "/tickets/close"),
            Operation::Send => ("POST", "/messages"),
            Operation::Receive => unreachable!("inbound messages come through the command line"),
        };
        let call = api.call(method, path).json(self.body.clone());
        self.key.iter().fold(call, |call, key| call.header("idempotency-key", key))
    }
}

/// Pseudo-random number generator (xorshift) with a seed, so that the choices of a failed run can be repeated.
pub struct SeededRandom(u64);

impl SeededRandom {
    pub fn new(seed: u64, cycle: u64, who: usize) -> Self {
        let mixed = seed ^ (cycle << 8 | who as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut dice = Self(mixed.max(1));
        // Similar seeds produce similar first numbers, so the first numbers are skipped.
        for _ in 0..8 {
            dice.roll(2);
        }
        dice
    }

    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % sides as u64) as usize
    }

    fn once_in(&mut self, sides: usize) -> bool {
        self.roll(sides) == 0
    }

    fn operation(&mut self) -> Operation {
        let mut left = self.roll(OPERATIONS.iter().map(|(_, weight)| weight).sum());
        for (operation, weight) in OPERATIONS {
            if left < weight {
                return operation;
            }
            left -= weight;
        }
        unreachable!("the roll is below the sum")
    }
}

/// A server under load, and the values that its writers share.
pub struct Load<'a> {
    pub api: &'a Api,
    pub url: &'a str,
    pub cycle: u64,
    /// Set just before the server is killed. From then on, broken connections are not errors.
    pub killing: &'a AtomicBool,
    pub answered: &'a AtomicUsize,
}

impl Load<'_> {
    /// Sends writes to one conversation, one after the other, until the server is killed. Returns the writes. At most the last write has an
    /// unknown outcome, or the last few writes if they are inbound messages, which are sent together.
    pub fn write(&self, number: usize, talk: &ConversationModel, mut dice: SeededRandom) -> Vec<Write> {
        let (mut ticket, mut label) = (talk.ticket.clone(), talk.label);
        let mut log: Vec<Write> = Vec::new();
        loop {
            // Consecutive writers begin with different operations, so that even a short run contains each operation.
            let operation = if log.is_empty() { first_operation(number) } else { dice.operation() };
            if operation == Operation::Receive {
                let count = 1 + dice.roll(3);
                let first = log.len();
                log.extend((0..count).map(|i| inbound(talk, &unique(number, self.cycle, first + i))));
                if !self.receive(&mut log[first..], &mut dice) {
                    return log;
                }
                if let Some(id) = log.last().and_then(|write| write.answer.as_ref()?["ticketId"].as_str()) {
                    ticket = id.to_owned();
                }
                continue;
            }
            let value = unique(number, self.cycle, log.len());
            let key = dice.once_in(2).then(|| format!("key-{value}"));
            let mut write = self.next(operation, value, talk, &ticket, label);
            write.key = key;
            let call = write.call(self.api);
            match call.attempt() {
                Ok(answer) => {
                    contract::conforms(&call, &answer);
                    write.answer = Some(answer.ok());
                    assert_eq!(answer.header("idempotency-replayed"), None, "{}", answer.described());
                    if operation == Operation::Labels {
                        label = (label + 1) % LABELS;
                    }
                    log.push(write);
                    self.answered.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => {
                    assert!(self.killing.load(Ordering::SeqCst), "a living server gave no answer: {error}: {write:?}");
                    write.sent = error.kind() != ErrorKind::ConnectionRefused;
                    log.push(write);
                    return log;
                }
            }
        }
    }

    fn next(&self, operation: Operation, value: String, talk: &ConversationModel, ticket: &str, label: usize) -> Write {
        let conversation = &talk.conversation;
        let mut unique = value.clone();
        let body = match operation {
            Operation::SetField => json!({"ticketId": ticket, "ticketFieldId": "f-text", "newValue": value}),
            Operation::Close => json!({"ticketId": ticket, "ticketFields": {"f-notes": value}}),
            Operation::Contact => json!({"firstName": "Kim", "email": format!("{value}@example.com")}),
            Operation::Labels => {
                unique = label_id((label + 1) % LABELS);
                json!({"conversationId": conversation, "addLabels": [unique], "removeLabels": [label_id(label)]})
            }
            Operation::Comment | Operation::Send | Operation::Receive => json!({"conversationId": conversation, "text": value}),
        };
        Write { operation, value: unique, body, key: None, answer: None, sent: true }
    }

    /// Passes inbound messages to the command `message receive`. Sometimes kills the command after a random delay, and runs it again for
    /// the messages without a response. Sometimes kills the command together with the server; then returns false if a message has no
    /// response.
    fn receive(&self, writes: &mut [Write], dice: &mut SeededRandom) -> bool {
        let doomed = dice.once_in(2);
        let mut fuse = dice.once_in(3).then(|| Duration::from_millis(5 + dice.roll(80) as u64));
        let mut from = 0;
        loop {
            let start = Instant::now();
            let gone = || doomed && self.killing.load(Ordering::SeqCst);
            let answers = receive(self.url, &writes[from..], || fuse.is_some_and(|fuse| start.elapsed() > fuse) || gone());
            for answer in answers {
                assert_eq!(answer["externalId"], writes[from].value);
                writes[from].answer = Some(answer);
                from += 1;
            }
            if from == writes.len() || gone() {
                return from == writes.len();
            }
            fuse = None;
        }
    }

    /// Reads new events with the command `counterpart events`, again and again until the server is killed, and appends them to `events`.
    pub fn read_events(&self, events: &mut Vec<String>, mut dice: SeededRandom) {
        while !self.killing.load(Ordering::SeqCst) {
            let doomed = dice.once_in(2);
            let arguments = ["events", "--store", STORE, "--after", &events.len().to_string()];
            let printed = run(self.url, &arguments, "", || doomed && self.killing.load(Ordering::SeqCst));
            take_events(whole_lines(&printed), events);
            thread::sleep(Duration::from_millis(dice.roll(30) as u64));
        }
    }
}

/// Sends some writes of a log again:
///
/// - the inbound messages without a response,
/// - the writes with an idempotency key and without a response,
/// - the last write that has both an idempotency key and a response.
///
/// `happened` says for each write of the log whether it has taken effect. Asserts that the server recognises exactly these writes when they
/// are sent again. Returns the writes that took effect only when they were sent again, with their responses. Adds the number of writes that
/// were sent again to `repeated`.
pub fn repeat(api: &Api, url: &str, log: &[Write], happened: &[bool], repeated: &mut usize) -> Vec<Write> {
    let last = log.iter().rposition(|write| write.key.is_some() && write.answer.is_some());
    let mut now = Vec::new();
    for (i, (write, happened)) in log.iter().zip(happened).enumerate() {
        let answer = if write.operation == Operation::Receive && write.answer.is_none() {
            let answer = receive(url, std::slice::from_ref(write), || false).remove(0);
            assert_eq!(answer["duplicate"], *happened, "{answer} to {write:?}");
            answer
        } else if write.key.is_some() && (write.answer.is_none() || last == Some(i)) {
            let answer = write.call(api).exchange();
            let data = answer.ok();
            assert_eq!(answer.header("idempotency-replayed").is_some(), *happened, "{}", answer.described());
            assert!(write.answer.as_ref().is_none_or(|first| *first == data), "{}\n  first: {write:?}", answer.described());
            data
        } else {
            continue;
        };
        *repeated += 1;
        if !happened {
            now.push(Write { answer: Some(answer), ..write.clone() });
        }
    }
    now
}

/// Returns the operation with which a writer begins. Consecutive writers get different operations. Operations of weight 0 are left out.
fn first_operation(number: usize) -> Operation {
    let offered: Vec<_> = OPERATIONS.iter().filter(|(_, weight)| *weight > 0).collect();
    offered[number % offered.len()].0
}

fn unique(number: usize, cycle: u64, serial: usize) -> String {
    format!("w{number}.{cycle}.{serial}")
}

pub fn label_id(label: usize) -> String {
    format!("lab-{label}")
}

fn inbound(talk: &ConversationModel, value: &str) -> Write {
    let body = json!({
        "accountId": "acc-widget", "referenceId": talk.conversation, "externalId": value, "sender": {"id": "visitor"}, "text": value,
    });
    Write { operation: Operation::Receive, value: value.to_owned(), body, key: None, answer: None, sent: true }
}

/// Runs `message receive` until it ends or `kill` returns true. Returns the responses that it printed.
fn receive(url: &str, writes: &[Write], kill: impl Fn() -> bool) -> Vec<Value> {
    let lines: String = writes.iter().map(|write| format!("{}\n", write.body)).collect();
    let printed = run(url, &["message", "receive", "--store", STORE], &lines, kill);
    let parsed = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("not an answer: {line}: {error}"));
    whole_lines(&printed).lines().map(parsed).collect()
}

/// Runs a command until it ends or `kill` returns true. Returns its output.
fn run(url: &str, arguments: &[&str], input: &str, kill: impl Fn() -> bool) -> String {
    let mut command = Command::new(BINARY);
    command.args(arguments).env("DATABASE_URL", url).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{BINARY} does not start: {error}"));
    // A thread reads the output while the command runs. A page of events does not fit into a pipe's buffer, so the command would otherwise
    // block.
    let mut stdout = child.stdout.take().expect("a pipe");
    let reader = thread::spawn(move || {
        let mut printed = String::new();
        let _ = stdout.read_to_string(&mut printed);
        printed
    });
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    let mut killed = false;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        if !killed && kill() {
            killed = true;
            let _ = child.kill();
        }
        thread::sleep(Duration::from_millis(1));
    };
    let mut complaint = String::new();
    let _ = child.stderr.take().expect("a pipe").read_to_string(&mut complaint);
    assert!(killed || status.success(), "counterpart {} ended with {status}: {complaint}", arguments.join(" "));
    reader.join().unwrap_or_default()
}

/// Returns the output up to the last line break, since a killed process may have stopped in the middle of a line.
fn whole_lines(printed: &str) -> &str {
    printed.rfind('\n').map_or("", |end| &printed[..=end])
}

/// Appends the printed events to `events`. Asserts that their sequence numbers continue without a gap.
pub fn take_events(printed: &str, events: &mut Vec<String>) {
    for line in printed.lines() {
        let next = format!("{{\"sequence\":{},", events.len() + 1);
        assert!(line.starts_with(&next), "expected an event that begins with {next}, got {line}");
        events.push(line.to_owned());
    }
}

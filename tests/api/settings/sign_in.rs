//! Tests of sign-in links by e-mail. The server sends the e-mails to an SMTP server written in Python (Debian package python3-aiosmtpd).

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::json;

use super::SettingsFixture;
use crate::{
    client::{Answer, Api},
    delivery_receiver::until,
    fixture::ANN,
};

/// A running SMTP server, which stores each received e-mail as a file.
struct SmtpServer {
    process: Child,
    url: String,
    folder: tempfile::TempDir,
}

impl SmtpServer {
    fn start() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = free.local_addr().expect("an address").to_string();
        drop(free);
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new("/usr/bin/python3");
        command.args(["-m", "aiosmtpd", "-n", "-l", &address, "-c", "aiosmtpd.handlers.Mailbox"]).arg(folder.path().join("mail"));
        let process = command.stdin(Stdio::null()).spawn().expect("python3 starts");
        let server = Self { process, url: format!("smtp://{address}"), folder };
        until("the SMTP server of the package python3-aiosmtpd listens", || TcpStream::connect(&address).is_ok());
        server
    }

    /// Returns the e-mails that were received so far, oldest first, with line breaks and equals signs decoded from quoted-printable.
    fn messages(&self) -> Vec<String> {
        let files = fs::read_dir(self.folder.path().join("mail/new")).into_iter().flatten();
        let mut paths: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
        paths.sort_by_key(|path| fs::metadata(path).and_then(|file| file.modified()).expect("a time"));
        paths.iter().map(|path| fs::read_to_string(path).expect("a message").replace("=\n", "").replace("=3D", "=")).collect()
    }

    /// Waits until more than `count` e-mails were received. Returns the e-mail that came after the first `count`.
    #[track_caller]
    fn message(&self, count: usize) -> String {
        until("a message came", || self.messages().len() > count);
        self.messages().remove(count)
    }
}

impl Drop for SmtpServer {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

fn fixture(url: &str) -> SettingsFixture {
    let fixture = SettingsFixture::with(&[
        ("COUNTERPART_SMTP_URL", url),
        ("COUNTERPART_MAIL_FROM", "Inbox <inbox@example.com>"),
        ("COUNTERPART_PUBLIC_URL", "https://inbox.example.com/"),
    ]);
    fixture.shop.server.database.sql(&format!("update users set email = 'Ann@Example.com' where user_id = '{ANN}' and store_id = 'desk'"));
    fixture
}

fn ask(fixture: &SettingsFixture, email: &str) -> Answer {
    fixture.api.raw("POST", "/settings/v1/session/link").json(json!({"email": email})).send()
}

fn open(fixture: &SettingsFixture, link: &str) -> Answer {
    fixture.api.raw("POST", "/settings/v1/session").json(json!({"link": link})).send()
}

#[track_caller]
fn links(message: &str) -> Vec<String> {
    message
        .lines()
        .filter_map(|line| line.strip_prefix("https://inbox.example.com/settings#link="))
        .map(|line| line.trim().to_owned())
        .collect()
}

#[test]
fn a_sign_in_link_is_sent_to_the_stored_address_and_opens_one_session() {
    let smtp = SmtpServer::start();
    let fixture = fixture(&smtp.url);
    ask(&fixture, "ann@example.COM").ok();
    let message = smtp.message(0);
    assert!(message.contains("To: Ann@Example.com") && message.contains("From: Inbox <inbox@example.com>"), "{message}");
    assert!(message.contains("Subject: Your link to the settings of "), "{message}");
    let link = links(&message).remove(0);
    let granted = &fixture.get("/audit").query("limit", 1).send().ok()[0];
    assert_eq!(
        (&granted["action"], &granted["via"], &granted["detail"]["sentTo"]),
        (&json!("session.granted"), &json!("system"), &json!("Ann@Example.com"))
    );
    let session = open(&fixture, &link).ok();
    assert_eq!((&session["userId"], &session["role"]), (&json!(ANN), &json!("owner")));
    open(&fixture, &link).fails(401);

    // A user who is an owner of two stores gets a single e-mail, which has a link for each store.
    let of_two = |email: &str| {
        let update = format!("update users set email = '{email}' where user_id = '{ANN}' and store_id = 'two'");
        fixture.shop.server.database.sql(&update);
    };
    of_two("Ann@Example.com");
    ask(&fixture, "ann@example.com").ok();
    let message = smtp.message(1);
    assert!(message.contains("Subject: Your links to the settings of 2 stores"), "{message}");
    let both = links(&message);
    open(&fixture, &both[0]).ok();
    let two = Api { store: "two".to_owned(), ..fixture.api.clone() };
    assert_eq!(two.raw("POST", "/settings/v1/session").json(json!({"link": both[1]})).send().ok()["storeId"], "two");

    // The user's addresses in the stores `desk` and `two` now differ in upper and lower case. Some mail systems treat two such spellings as
    // different mailboxes, so each spelling gets its own e-mail.
    of_two("ANN@example.com");
    ask(&fixture, "ann@example.com").ok();
    until("two messages came", || smtp.messages().len() == 4);
    let last = smtp.messages().split_off(2);
    assert!(last.iter().all(|message| links(message).len() == 1), "{last:?}");
    assert!(["To: Ann@Example.com", "To: ANN@example.com"].iter().all(|to| last.iter().any(|message| message.contains(to))), "{last:?}");
}

#[test]
fn a_sign_in_link_becomes_invalid_when_the_address_changes_or_time_expires() {
    let smtp = SmtpServer::start();
    let fixture = fixture(&smtp.url);
    let database = &fixture.shop.server.database;
    ask(&fixture, "ann@example.com").ok();
    let bound = links(&smtp.message(0)).remove(0);
    database.sql(&format!("update users set email = 'new@example.com' where user_id = '{ANN}'"));
    open(&fixture, &bound).fails(401);
    ask(&fixture, "new@example.com").ok();
    let late = links(&smtp.message(1)).remove(0);
    database.sql("update grants set expires_at = 1 where sent_to = 'new@example.com'");
    open(&fixture, &late).fails(401);
    ask(&fixture, "new@example.com").ok();
    open(&fixture, &links(&smtp.message(2)).remove(0)).ok();
}

#[test]
fn responses_to_link_requests_do_not_reveal_which_addresses_are_known() {
    let smtp = SmtpServer::start();
    let fixture = fixture(&smtp.url);
    let database = &fixture.shop.server.database;
    database.sql("update users set email = 'bo@example.com' where id = 'seat-bo'");
    // An address that no user has, and the addresses of an agent, of an invited user and of an owner. Only the owner gets an e-mail, but
    // the responses must be equal.
    let addresses = ["nobody@example.com", "bo@example.com", "new@example.com", "ann@example.com"];
    let mut answers = Vec::new();
    for round in 0..3 {
        for address in addresses {
            answers.push(ask(&fixture, address).ok());
        }
        until("the owner's message came", || smtp.messages().len() == round + 1);
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    // The fourth request for an address is refused. The refusal is the same for all addresses.
    let refused = |address: &&str| {
        let answer = ask(&fixture, address);
        (answer.fails(429), answer.header("retry-after").map(str::to_owned))
    };
    let refusals: Vec<_> = addresses.iter().map(refused).collect();
    assert!(refusals.iter().all(|refusal| *refusal == refusals[0] && refusal.1.as_deref() == Some("900")), "{refusals:?}");
    // Sends another request. The next e-mail that arrives is for this request, which shows that the refused requests caused no e-mail.
    fixture.shop.server.database.sql("update users set email = 'later@example.com' where id = 'seat-ann' and store_id = 'desk'");
    ask(&fixture, "later@example.com").ok();
    assert!(smtp.message(3).contains("To: later@example.com"));
}

/// The SMTP server of this test accepts connections, but never responds.
#[test]
fn a_link_request_is_answered_without_waiting_for_the_smtp_server() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let fixture = fixture(&format!("smtp://{}", silent.local_addr().expect("an address")));
    let begun = Instant::now();
    for _ in 0..3 {
        ask(&fixture, "ann@example.com").ok();
    }
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}; one message alone would take 30 s", begun.elapsed());
}

#[test]
fn invalid_link_requests_are_refused_and_an_unreachable_smtp_server_is_logged() {
    let fixture = fixture("smtp://127.0.0.1:9");
    for (body, complaint) in [
        (json!({}), "body.email"),
        (json!({"email": null}), "body.email"),
        (json!({"email": 1}), "body.email"),
        (json!({"email": ["ann@example.com", "eve@example.com"]}), "body.email"),
        (json!({"email": "ann@example.com\r\nBcc: eve@example.com"}), "body.email"),
        (json!({"email": "Ann <ann@example.com>"}), "body.email"),
        (json!({"email": format!("{}@example.com", "a".repeat(300))}), "body.email"),
        (json!({"email": "ann@example.com", "store": "desk"}), "store"),
    ] {
        let message = fixture.api.raw("POST", "/settings/v1/session/link").json(body).send().fails(400);
        assert!(message.contains(complaint), "{message}");
    }
    let foreign = fixture.api.raw("POST", "/settings/v1/session/link").header("origin", "https://example.org");
    foreign.json(json!({"email": "ann@example.com"})).send().fails(403);
    ask(&fixture, "ann@example.com").ok();
    until("the failure is logged", || fixture.shop.server.log().contains("could not be sent"));
    // The server revokes a link if it cannot send the e-mail.
    until("the link is ended", || fixture.get("/audit").query("limit", 1).send().ok()[0]["action"] == "session.revoked");
    let log = fixture.shop.server.log();
    assert!(!log.to_lowercase().contains("ann@example.com") && !log.contains("cps_"), "{log}");
    fixture.get("/session").send().ok();

    let complaint = ask(&SettingsFixture::open(), "ann@example.com").fails(409);
    assert!(complaint.contains("--smtp-url"), "{complaint}");
}

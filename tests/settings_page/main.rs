//! End-to-end tests of the settings page, the web page on which owners and admins manage a store, with the built binary and a real browser.
//!
//! - [`browser`] drives Chromium; [`webhook_receiver`] receives the deliveries of a webhook. The servers and the test data come from the
//!   modules of the API tests (`tests/api`).
//! - Most tests end with a check of the browser's logs: the console has only the failed requests that the test expects, and the page sent
//!   requests only to the server.
//! - The tests need `chromium` and `chromedriver`, and fail without them. `COUNTERPART_TEST_POSTGRES` names a PostgreSQL server to run on.

/// Whether the binary under test was built for revision A, the older of the API's two revisions.
const REV_A: bool = cfg!(feature = "rev-a");

#[path = "../api/client.rs"]
#[allow(dead_code, unused_imports, reason = "shared with the suite, which uses all of it")]
mod client;
#[path = "../api/contract.rs"]
mod contract;
#[path = "../api/fixture/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with the suite, which uses all of it")]
mod fixture;
#[path = "../api/harness.rs"]
#[allow(dead_code, unused_imports, reason = "shared with the suite, which uses all of it")]
mod harness;

mod browser;
mod tabs;
mod webhook_receiver;

use std::ops::Deref;

use serde_json::json;

use browser::{Browser, ENTER, ESCAPE, SPACE, TAB};
use client::Api;
use fixture::{ANN, BO, write_store};
use harness::{Database, Server, Settings};
use webhook_receiver::Endpoint;

const STORE: &str = "desk";

/// The XPath of the dialog that is open.
const DIALOG: &str = "//dialog[@open]";

const NAME: &str = "//dialog[@open]//input[@name='name']";
const ADDRESS: &str = "//dialog[@open]//input[@name='url']";
const SECRET: &str = "//code[@id='secret']";

/// A browser and the server whose pages it opens.
struct BrowserSession {
    browser: Browser,
    server: Server,
}

impl Deref for BrowserSession {
    type Target = Browser;

    fn deref(&self) -> &Browser {
        &self.browser
    }
}

impl BrowserSession {
    /// Starts a server, and a browser that has not opened any page yet.
    fn begin() -> Self {
        Self::with(&[("COUNTERPART_ALLOW_PRIVATE_TARGETS", "true")])
    }

    /// Like [`Self::begin`], but starts the server with these settings.
    fn with(settings: Settings<'_>) -> Self {
        let database = Database::with(&[(STORE, write_store())]);
        let server = Server::start_with(database, settings);
        let browser = Browser::open();
        // A new browser window sends requests by itself. Reading the log here discards the entries of these requests.
        browser.go("about:blank");
        browser.requests();
        Self { browser, server }
    }

    /// Starts a server and a browser, and opens the settings page as the store's owner.
    #[track_caller]
    fn of_owner() -> Self {
        let visit = Self::begin();
        visit.go(&visit.link(ANN));
        visit.sees("//h2[.='API keys']");
        visit
    }

    fn page(&self) -> String {
        format!("http://{}/settings", self.server.address)
    }

    fn link(&self, user: &str) -> String {
        let base = format!("http://{}", self.server.address);
        self.server.database.run(&["settings", "link", "--store", STORE, "--user", user, "--public-url", &base])
    }

    /// Sends a GET request with this API key. Returns the status of the response.
    #[track_caller]
    fn status(&self, secret: &str, path: &str) -> u16 {
        let api = Api { address: self.server.address.clone(), key: Some(secret.to_owned()), store: STORE.to_owned() };
        api.get(path).send().status
    }

    /// Reads the secret in the dialog, closes the dialog, and asserts that the page no longer contains the secret. Returns the secret.
    #[track_caller]
    fn take_secret(&self) -> String {
        let secret = self.text(SECRET);
        self.press("I have stored it");
        self.misses(DIALOG);
        let text = self.script("return document.documentElement.textContent");
        assert!(!text.as_str().unwrap_or_default().contains(&secret), "a secret is shown once");
        secret
    }

    /// Waits until the delivery log on the page shows this number of attempts.
    #[track_caller]
    fn attempts(&self, count: usize) {
        self.until("the log grows", &format!("document.querySelectorAll('#deliveries tbody tr').length === {count}"));
    }

    #[track_caller]
    fn turn_to(&self, section: &str) {
        self.click(&format!("//nav/a[.='{section}']"));
        self.until(
            "the section is there",
            "!document.querySelector('section:not([hidden]) .state span').textContent.startsWith('Loading')",
        );
    }

    /// Asserts that the page sent requests only to the server, and that the console has exactly these failed requests.
    #[track_caller]
    fn end(self, refusals: &[(&str, u16)]) {
        let own = format!("http://{}/", self.server.address);
        let requests: Vec<String> = self.requests().into_iter().filter(|url| !url.starts_with("data:") && url != "about:blank").collect();
        assert!(requests.iter().any(|url| url.ends_with("/settings/page.js")), "the log lacks page.js: {requests:?}");
        let others: Vec<_> = requests.iter().filter(|url| !url.starts_with(&own)).collect();
        assert!(others.is_empty(), "requests to other hosts: {others:?}");

        // The browser logs this message if an element with `autofocus` is in a dialog and another element already has the focus. The
        // message is ignored.
        let remark = "Autofocus processing was blocked";
        let console: Vec<String> = self.console().into_iter().filter(|line| !line.contains(remark)).collect();
        let expected: Vec<String> = refusals
            .iter()
            .map(|(path, status)| {
                format!("{}{path} - Failed to load resource: the server responded with a status of {status}", &own[..own.len() - 1])
            })
            .collect();
        let alike = console.len() == expected.len() && console.iter().zip(&expected).all(|(found, expected)| found.starts_with(expected));
        assert!(alike, "the console holds {console:#?}\ninstead of {expected:#?}");
    }
}

/// Returns the XPath of the row of the API key with this name.
fn key(name: &str) -> String {
    format!("//tr[.//strong[.='{name}']]")
}

/// Returns the XPath of the card of the webhook with this address.
fn webhook(url: &str) -> String {
    format!("//li[.//code[.='{url}']]")
}

fn button(within: &str, text: &str) -> String {
    format!("{within}//button[.='{text}']")
}

fn badge(within: &str, text: &str) -> String {
    format!("{within}//*[contains(@class, 'badge') and .='{text}']")
}

fn box_of(value: &str) -> String {
    format!("{DIALOG}//input[@value='{value}']")
}

fn is_ticked(value: &str) -> String {
    format!("document.querySelector('dialog[open] input[value=\"{value}\"]').checked")
}

#[test]
fn a_sign_in_link_works_once_and_signing_out_ends_its_session() {
    let visit = BrowserSession::begin();
    visit.go(&visit.page());
    visit.reads("//*[@id='gate-help']", "counterpart settings link");

    let link = visit.link(ANN);
    visit.go("about:blank");
    visit.go(&link);
    visit.reads("//*[@id='who']", "User seat-ann, owner, until ");
    visit.reads("//*[@id='store']", STORE);
    assert_eq!(visit.script("return location.href"), visit.page(), "the address still contains the secret of the link");
    visit.reload();
    visit.sees("//h2[.='API keys']");

    visit.go("about:blank");
    visit.go(&link);
    // The link was already used. If it is opened again, the page shows a message about this, and still shows the settings, because the
    // session is open.
    visit.sees("//h2[.='API keys']");
    visit.reads("//*[@id='message']", "used already");

    visit.go("about:blank");
    visit.go(&visit.link(BO));
    visit.reads("//*[@id='gate-message']", "nly owners and admins");
    visit.misses("//*[@id='gate-help']");

    visit.reload();
    let session = visit.cookie("counterpart_session");
    let anonymous = Api { address: visit.server.address.clone(), key: None, store: String::new() };
    let ask = || anonymous.raw("GET", "/settings/v1/session").header("cookie", &format!("counterpart_session={session}")).exchange().status;
    assert_eq!(ask(), 200);
    visit.press("Sign out");
    visit.reads("//*[@id='gate-message']", "You are signed out.");
    assert_eq!(ask(), 401);

    // Opens a link in a window that already shows the settings page. Then ends the session with a command.
    visit.script(&format!("location.href = '{}'", visit.link(ANN)));
    visit.sees("//h2[.='API keys']");
    visit.server.database.run(&["settings", "revoke", "--store", STORE, "--user", ANN]);
    visit.click("//nav/a[.='Changes']");
    visit.reads("//*[@id='gate-message']", "has ended");
    let session = "/settings/v1/session";
    visit.end(&[(session, 401), (session, 401), (session, 403), ("/settings/v1/audit?limit=50", 401)]);
}

#[test]
fn an_admin_sees_which_actions_need_an_owner() {
    const DEE: &str = "0a000000-0000-4000-8000-000000000005";
    let visit = BrowserSession::begin();
    let line = |kind: &str, record: serde_json::Value| json!({"kind": kind, "record": record});
    visit.server.database.import(
        STORE,
        &[
            line("role", json!({"id": "role-admin", "name": "Admin", "kind": "admin"})),
            line("user", json!({"id": "seat-dee", "userId": DEE, "name": "Dee", "roleId": "role-admin"})),
        ],
    );
    visit.go(&visit.link(DEE));
    visit.press("Create key");
    visit.fill(NAME, "Sync");
    visit.click(&box_of("labels:read"));
    let choice = "//dialog[@open]//select[@name='userId']";
    visit.reads(choice, "you");
    visit.choose(choice, "User seat-ann");
    visit.press("Save");
    visit.reads("//dialog[@open]//p[@role='alert']", "names an owner");
    visit.choose(choice, "you");
    visit.press("Save");
    visit.take_secret();
    visit.reads(&key("Sync"), "as Dee");
    visit.end(&[("/settings/v1/keys", 403)]);
}

#[test]
fn the_documentation_works_under_its_content_security_policy() {
    let visit = BrowserSession::begin();
    let pages = [
        ("/docs", "//*[@id='listLabels']//summary[b='200']", "//*[@id='listLabels']//details[@open]//code[.='x-request-id']"),
        ("/settings/docs", "//*[@id='listKeys']//summary[b='401']", "//*[@id='listKeys']//details[@open]//pre"),
        ("/docs/guides/paging", "//label[.='Python']", "//pre[@data-language='python']"),
        // This page shows the programming language that was chosen on the previous page.
        ("/docs/guides/errors", "//button[.='Copy']", "//pre[@data-language='python']"),
        ("/docs/changes", "//label[.//input[@id='back']]", "//main[contains(@class, 'back')]"),
    ];
    for (page, press, shown) in pages {
        visit.go(&format!("http://{}{page}", visit.server.address));
        visit.click(press);
        visit.sees(shown);
        let console: Vec<_> = visit.console().into_iter().filter(|line| !line.contains("/favicon.ico")).collect();
        assert!(console.is_empty(), "{page}: {console:#?}");
        let host = format!("http://{}/", visit.server.address);
        let requests: Vec<_> = visit.requests().into_iter().filter(|url| url.starts_with("http") && !url.starts_with(&host)).collect();
        assert!(requests.is_empty(), "{page}: requests to other hosts: {requests:?}");
    }
}

#[test]
fn a_key_is_created_rotated_edited_suspended_and_deleted_on_the_page() {
    const MARKUP: &str = "<img src=x onerror=window.owned=1>";
    let visit = BrowserSession::of_owner();

    visit.press("Create key");
    visit.fill(NAME, MARKUP);
    visit.press("Save");
    visit.reads("//dialog[@open]//p[@role='alert']", "Choose at least one scope.");
    visit.click(&box_of("users:write"));
    visit.until("a write scope ticks its read scope", &is_ticked("users:read"));
    visit.click(&box_of("users:read"));
    visit.until("unticking a read scope unticks its write scope", &format!("!{}", is_ticked("users:write")));
    visit.click(&box_of("users:write"));
    visit.press("Save");
    visit.reads("//*[@id='secret-warning']", "Copy it now.");
    visit.strike(ESCAPE);
    visit.strike(ESCAPE);
    visit.press("Copy");
    visit.reads("//*[@id='copied']", "Copied.");
    let copied = visit.clipboard();
    let first = visit.take_secret();
    assert_eq!(copied, first);
    assert_eq!(visit.status(&first, "/users"), 200);

    let row = key(MARKUP);
    visit.reads(&row, "read and write users");
    assert!(visit.text(&format!("{row}//code")).ends_with(&first[first.len() - 4..]));
    assert_eq!(visit.script("return window.owned === undefined && !document.querySelector('img')"), true);
    visit.until("focus is back", "document.activeElement.textContent === 'Create key'");

    visit.click(&button(&row, "Rotate"));
    visit.click(&button(DIALOG, "Rotate"));
    let second = visit.take_secret();
    assert_ne!(first, second);
    assert_eq!((visit.status(&first, "/users"), visit.status(&second, "/users")), (200, 200));
    visit.until("focus is back", "document.activeElement.textContent === 'Rotate'");

    visit.click(&button(&row, "Edit"));
    visit.fill(NAME, "Reports");
    visit.click(&box_of("users:read"));
    visit.click(&box_of("labels:read"));
    visit.press("Save");
    let row = key("Reports");
    visit.reads(&row, "read labels");
    assert_eq!((visit.status(&second, "/users"), visit.status(&second, "/labels")), (403, 200));

    visit.click(&button(&row, "Suspend"));
    visit.click(&button(DIALOG, "Cancel"));
    visit.misses(DIALOG);
    assert_eq!(visit.status(&second, "/labels"), 200);
    visit.click(&button(&row, "Suspend"));
    visit.click(&button(DIALOG, "Suspend"));
    visit.sees(&badge(&row, "suspended"));
    assert_eq!(visit.status(&second, "/labels"), 401);
    visit.click(&button(&row, "Activate"));
    visit.sees(&badge(&row, "active"));
    assert_eq!(visit.status(&second, "/labels"), 200);

    visit.click(&button(&row, "Delete"));
    visit.click(&button(DIALOG, "Delete"));
    visit.misses(&row);
    assert_eq!((visit.status(&first, "/labels"), visit.status(&second, "/labels")), (401, 401));
    visit.reads("//section[@id='keys']//*[@class='state']", "There are no API keys yet.");
    visit.until("focus has a place", "document.activeElement.id === 'keys-title'");

    visit.turn_to("Changes");
    let entries = "//section[@id='changes']//tbody/tr";
    for action in ["created", "rotated", "edited", "deactivated", "activated", "deleted"] {
        visit.reads(&format!("{entries}[.//span[.='key.{action}']]"), "User seat-ann");
    }
    visit.end(&[]);
}

#[test]
fn a_key_is_created_with_the_keyboard_only() {
    let visit = BrowserSession::of_owner();
    let tab_to = |what: &str, expression: &str| {
        for _ in 0..40 {
            visit.strike(TAB);
            if visit.script(&format!("return {expression}")) == true {
                let outline = visit.script("return getComputedStyle(document.activeElement).outlineStyle");
                assert_ne!(outline, "none", "the focus on {what} is visible");
                return;
            }
        }
        panic!("Tab does not lead to {what}");
    };
    let on = |text: &str| format!("document.activeElement.textContent === '{text}'");

    tab_to("the button", &on("Create key"));
    visit.strike(ENTER);
    visit.until("the name has focus", "document.activeElement.name === 'name'");
    visit.strike("Typed");
    tab_to("a scope", "document.activeElement.value === 'tickets:write'");
    visit.strike(SPACE);
    tab_to("the other button", &on("Save"));
    visit.strike(ENTER);
    visit.sees(SECRET);
    visit.until("the copy button has focus", &on("Copy"));
    visit.strike(SPACE);
    visit.reads("//*[@id='copied']", "Copied.");
    let secret = visit.text(SECRET);
    tab_to("the way out", &on("I have stored it"));
    visit.strike(ENTER);
    visit.misses(DIALOG);
    visit.until("focus is back", &on("Create key"));
    visit.reads(&key("Typed"), "read and write tickets");
    assert_eq!(visit.status(&secret, "/tickets/fields"), 200);

    visit.strike(ENTER);
    visit.sees(DIALOG);
    visit.strike(ESCAPE);
    visit.misses(DIALOG);
    visit.end(&[]);
}

#[test]
fn the_page_shows_webhook_deliveries_and_replays_them() {
    let (visit, endpoint) = (BrowserSession::of_owner(), Endpoint::open());
    let shop = visit.server.api(STORE, &["tickets:write"]);
    let close = |ticket: &str| shop.post("/tickets/close", json!({"ticketId": ticket})).send().ok();
    let attempt = |kind: &str, answer: &str, outcome: &str| {
        format!("//section[@id='deliveries']//tbody/tr[.//*[.='{kind}'] and .//*[.='{answer}'] and .//*[.='{outcome}']]")
    };

    visit.turn_to("Webhooks");
    visit.press("Add webhook");
    visit.fill(ADDRESS, "ftp://example.com");
    visit.press("Save");
    visit.reads("//dialog[@open]//p[@role='alert']", "Address: must begin with https://");
    visit.until("the input to mend has focus", "document.activeElement.name === 'url'");
    visit.fill(ADDRESS, &endpoint.url);
    visit.script("document.querySelectorAll('#kinds input:not([value=\"ticket.closed\"])').forEach((box) => box.click())");
    visit.press("Save");
    assert!(visit.take_secret().starts_with("whsec_"));
    let card = webhook(&endpoint.url);
    visit.reads(&card, "ticket.closed");
    visit.sees(&badge(&card, "enabled"));

    visit.press("Send test event");
    visit.reads("//*[@id='message']", "A test event is on its way.");
    visit.sees(&attempt("webhook.test", "200", "delivered"));
    assert_eq!(endpoint.taken(), 1);
    visit.press("Replay");
    visit.attempts(2);
    assert_eq!(endpoint.taken(), 2);

    close("t-free");
    visit.sees(&attempt("ticket.closed", "200", "delivered"));
    visit.press("Replay …");
    visit.press("Count");
    visit.reads("//*[@id='replay-count']", "There is nothing to send.");
    visit.click("//dialog[@open]//input[@name='missing']");
    visit.press("Count");
    visit.reads("//*[@id='replay-count']", "1 event would be sent.");
    assert_eq!(endpoint.taken(), 3, "counting sends nothing");
    visit.press("Send 1 event");
    visit.attempts(4);
    assert_eq!(endpoint.taken(), 4);

    endpoint.answers(503);
    close("t-ann");
    let failed = attempt("ticket.closed", "503", "retrying");
    visit.sees(&failed);
    assert_ne!(visit.text(&format!("{failed}/td[@data-label='Next attempt']")), "–");
    visit.click(&button(&failed, "Details"));
    visit.reads("//*[@id='attempt-sent']", "\"type\":\"ticket.closed\"");
    visit.reads("//*[@id='attempt-outcome']", "Status 503, after ");
    visit.reads("//*[@id='attempt-answer']", "<b>noted</b>");
    visit.press("Close");
    visit.misses(DIALOG);
    visit.turn_to("Webhooks");
    visit.sees(&badge(&card, "failing"));

    endpoint.answers(200);
    visit.click(&button(&card, "Edit"));
    let moved = format!("{}/two", endpoint.url);
    visit.fill(ADDRESS, &moved);
    visit.choose("//dialog[@open]//select[@name='accountId']", "Account acc-line");
    visit.press("Save");
    let card = webhook(&moved);
    visit.reads(&card, "Account acc-line (line)");
    visit.click(&button(&card, "Rotate secret"));
    visit.click(&button(DIALOG, "Rotate"));
    assert!(visit.take_secret().starts_with("whsec_"));
    visit.click(&button(&card, "Disable"));
    visit.click(&button(DIALOG, "Disable"));
    visit.sees(&badge(&card, "disabled"));
    visit.reads(&card, "Disabled: disabled by its owner.");
    visit.misses(&button(&card, "Send test event"));
    visit.click(&button(&card, "Enable"));
    visit.sees(&badge(&card, "enabled"));
    visit.click(&button(&card, "Delete"));
    visit.click(&button(DIALOG, "Delete"));
    visit.misses(&card);
    visit.reads("//section[@id='webhooks']//*[@class='state']", "There are no webhooks yet.");
    visit.end(&[("/settings/v1/webhooks", 400)]);
}

#[test]
fn long_logs_are_paged_and_the_page_fits_the_width_of_a_phone() {
    let visit = BrowserSession::begin();
    let endpoint = Endpoint::open();
    let word = "averylongwordwithoutanyplacetobreakit".repeat(2);
    let url = format!("{}/{word}{word}", endpoint.url);
    let database = &visit.server.database;
    database.run(&["key", "create", "--store", STORE, "--name", &word, "--scopes", "tickets:write,labels:read"]);
    let made = database.run(&["webhook", "create", "--store", STORE, "--url", &url, "--json"]);
    let hook = serde_json::from_str::<serde_json::Value>(&made).expect("one object")["id"].clone();

    visit.resize(360, 740);
    visit.go(&visit.link(ANN));
    visit.sees(&key(&word));
    visit.script(&format!(
        "const body = JSON.stringify({{ webhookId: {hook} }});
         const request = {{ method: 'POST', headers: {{ 'content-type': 'application/json' }}, body }};
         for (let i = 0; i < 60; i++) await fetch('/settings/v1/webhooks/test', request)"
    ));
    for (section, rows) in [("Webhooks", 1), ("Delivery log", 50), ("Changes", 50), ("API keys", 1)] {
        visit.turn_to(section);
        let list = "document.querySelectorAll('section:not([hidden]) .list > *').length";
        visit.until("there are rows", &format!("{list} === {rows}"));
        let widths = visit.script("return [document.documentElement.scrollWidth, document.documentElement.clientWidth]");
        let widths: [u64; 2] = serde_json::from_value(widths).expect("two widths");
        assert!(widths[0] <= widths[1] && widths[1] <= 360, "{section} is {} wide in a window of {}", widths[0], widths[1]);
    }
    visit.press("Create key");
    let dialog = visit.script("const dialog = document.querySelector('dialog[open]'); return dialog.scrollWidth <= dialog.clientWidth");
    assert_eq!(dialog, true, "a dialog fits a phone");
    visit.press("Cancel");

    visit.turn_to("Delivery log");
    visit.press("Older");
    visit.attempts(60);
    visit.misses("//button[.='Older']");
    // The page refreshes the delivery log by itself. A refresh adds new entries and keeps the rows of the older entries.
    visit.script(&format!("document.querySelector('#deliveries tbody tr').dataset.seen = 1; window.hook = {hook}"));
    visit.script(
        "const body = JSON.stringify({ webhookId: window.hook });
         await fetch('/settings/v1/webhooks/test', { method: 'POST', headers: { 'content-type': 'application/json' }, body })",
    );
    visit.attempts(61);
    assert_eq!(visit.script("return document.querySelectorAll('#deliveries tbody tr')[1].dataset.seen"), "1", "rows stay");
    visit.turn_to("Changes");
    visit.press("Older");
    visit.until("the log ends", "document.querySelectorAll('#changes tbody tr').length > 60");
    visit.end(&[]);
}

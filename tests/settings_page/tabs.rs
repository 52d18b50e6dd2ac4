//! Tests of the settings page in a browser: the tabs of drafts, accounts, team and sessions, sign-in links by e-mail, and the languages of
//! the page.

use serde_json::json;

use super::{ADDRESS, ANN, BO, BrowserSession, DIALOG, REV_A, STORE, badge, box_of, button};

/// Handles three drafts: messages of an assistant that are sent only after a person has released them. The contact wrote after `d-2` was
/// made, so the first click on "Send" only shows a notice about this, and the second click sends the draft. `d-1` is edited and sent. `d-3`
/// is discarded. The account has no bridge (the endpoint that passes its messages on to the channel), so the sent messages fail. One of
/// them is sent again.
#[test]
fn drafts_are_reviewed_beside_their_conversation() {
    let visit = BrowserSession::begin();
    for (id, text, seen) in [("d-1", "Hi <b>there</b>", "'m-1'"), ("d-2", "Second", "NULL"), ("d-3", "Third", "'m-1'")] {
        visit.server.database.sql(&format!(
            "INSERT INTO drafts (store_id, id, key_id, key_name, operation, content, conversation_id, seen_message_id, created_at, updated_at, \
             expires_at, state) VALUES ('{STORE}', '{id}', 'key-gone', 'Assistant', 'sendTextMessage', \
             '{{\"operation\":\"sendTextMessage\",\"conversationId\":\"conv-free\",\"text\":\"{text}\"}}', 'conv-free', {seen}, 1, 1, \
             4000000000000, 'pending')"
        ));
    }
    let draft = |text: &str| format!("//section[@id='drafts']//tr[.//span[.='{text}']]");
    let message = "//dialog[@open]//textarea[@name='text']";
    visit.go(&visit.link(ANN));
    visit.turn_to("Drafts");

    visit.click(&button(&draft("Second"), "Review"));
    visit.sees("//ol[@id='draft-messages']/li[contains(@class, 'inbound')]");
    visit.reads("//*[@id='draft-recipient']", "over Account acc-line (line).");
    visit.press("Send");
    visit.reads("//*[@id='draft-news']", "The contact wrote after the draft was made.");
    visit.press("Send");
    visit.misses(&draft("Second"));

    visit.click(&button(&draft("Hi <b>there</b>"), "Review"));
    visit.sees("//ol[@id='draft-messages']/li[.//p[.='Second']]");
    visit.fill(message, "Hello");
    visit.press("Send");
    visit.misses(&draft("Hi <b>there</b>"));

    visit.click(&button(&draft("Third"), "Review"));
    visit.click(&button(DIALOG, "Discard"));
    visit.click("//dialog[@id='confirm-dialog']//button[.='Discard']");
    visit.misses(&draft("Third"));
    visit.reads("//section[@id='drafts']//*[@class='state']", "There are no drafts to review.");
    let api = visit.server.api(STORE, &["messages:read"]);
    let sent = api.get("/messages").query("conversationId", "conv-free").query("pageSize", 5).send().ok();
    let text = |n: usize| if REV_A { sent[n]["payload"]["text"].clone() } else { sent[n]["text"].clone() };
    assert_eq!((text(0), text(1)), (json!("Hello"), json!("Second")));

    visit.turn_to("Undelivered");
    let failed = "//section[@id='undelivered']//tr[.//span[.='Hello']]";
    visit.reads(failed, "The account has no bridge");
    visit.reads(failed, "1 attempt");
    visit.click(&button(failed, "Send again"));
    visit.reads("//*[@id='message']", "The message is being sent again.");
    visit.sees(&badge(failed, "failed"));
    visit.turn_to("Changes");
    visit.reads("//section[@id='changes']//tbody", "message.retried");
    visit.end(&[("/settings/v1/drafts/release", 409)]);
}

#[test]
fn account_access_bridges_and_seats_are_managed_on_the_page() {
    let visit = BrowserSession::of_owner();
    visit.turn_to("Accounts");
    let account = "//section[@id='accounts']//li[.//*[.='Account acc-line']]";
    visit.reads(account, "every user");
    visit.click(&button(account, "Change access"));
    visit.click(&box_of(ANN));
    visit.press("Save");
    visit.misses(DIALOG);
    visit.reads(account, "User seat-ann");

    visit.click(&button(account, "Set bridge"));
    visit.fill(ADDRESS, "https://bridge.example.com/line");
    visit.press("Save");
    let first = visit.take_secret();
    visit.reads(account, "https://bridge.example.com/line");
    visit.click(&button(account, "Rotate bridge secret"));
    visit.click(&button(DIALOG, "Rotate"));
    assert_ne!(visit.take_secret(), first);
    visit.click(&button(account, "Remove bridge"));
    visit.click(&button(DIALOG, "Remove"));
    visit.misses(DIALOG);
    visit.sees(&button(account, "Set bridge"));

    visit.turn_to("Team");
    visit.press("Add a person");
    visit.strike("Noi\u{e004}noi@shop.example");
    visit.choose("//dialog[@open]//select[@name='role']", "admin");
    visit.press("Save");
    visit.reads("//*[@id='message']", "Noi was added. The command above prints a link for the user id");
    let added = "//section[@id='team']//tr[.//strong[.='Noi']]";
    visit.reads(added, "noi@shop.example");
    visit.click(&button(added, "Change role"));
    visit.choose("//dialog[@open]//select[@name='role']", "agent");
    visit.press("Save");
    visit.reads("//*[@id='message']", "The role of Noi is agent now.");
    visit.press("Add a person");
    visit.strike("Noi\u{e004}NOI@shop.example\u{e007}");
    visit.reads("//dialog[@open]//p[@role='alert']", "E-mail: `NOI@shop.example` belongs to another user of the store already");
    visit.click(&button(DIALOG, "Cancel"));
    visit.misses(DIALOG);
    let seat = format!("//section[@id='team']//tr[.//code[.='{BO}']]");
    visit.misses(&format!("//section[@id='team']//tr[.//code[.='{ANN}']]//button"));
    visit.click(&button(&seat, "Remove"));
    visit.click(&button(DIALOG, "Remove"));
    visit.misses(&seat);
    visit.end(&[("/settings/v1/users", 409)]);
}

#[test]
fn sessions_tokens_and_links_are_listed_and_ended() {
    let visit = BrowserSession::of_owner();
    visit.server.database.run(&["settings", "token", "--store", STORE, "--user", ANN, "--can", "events,audit"]);
    visit.turn_to("Sessions");
    let token = "//section[@id='sessions']//tr[.//span[.='token']]";
    visit.reads(token, "events, audit");
    visit.reads("//section[@id='sessions']//tr[.//span[.='this session']]", "everything");
    visit.misses("//section[@id='sessions']//tr[.//span[.='this session']]//button");
    visit.click(&button(token, "Revoke"));
    visit.click(&button(DIALOG, "Revoke"));
    visit.misses(token);
    visit.turn_to("Changes");
    visit.reads("//section[@id='changes']//tr[.//span[.='session.revoked']]", "kind: token");
    visit.end(&[]);
}

/// Without SMTP settings, the sign-in page names the command that prints a sign-in link. With SMTP settings, a user asks for a link by
/// e-mail, with the keyboard. After too many requests the user has to wait.
#[test]
fn a_sign_in_link_by_e_mail_is_requested_on_the_sign_in_page() {
    let plain = BrowserSession::begin();
    plain.go(&plain.page());
    plain.sees("//*[@id='gate-help']");
    plain.misses("//*[@id='gate-mail']");
    let visit = BrowserSession::with(&[
        ("COUNTERPART_SMTP_URL", "smtp://127.0.0.1:9"),
        ("COUNTERPART_MAIL_FROM", "inbox@example.com"),
        ("COUNTERPART_PUBLIC_URL", "https://inbox.example.com"),
    ]);
    visit.go(&visit.page());
    visit.sees("//*[@id='gate-mail']");
    visit.misses("//*[@id='gate-help']");
    visit.strike("\u{e004}nobody\u{e007}");
    visit.reads("//*[@id='gate-message']", "E-mail: must be an e-mail address");
    visit.script("document.querySelector('#gate-mail input').select()");
    visit.strike("nobody@example.com\u{e007}");
    visit.reads("//*[@id='gate-message']", "If nobody@example.com is the address of an owner or admin, a link is on its way.");
    for _ in 0..3 {
        visit.press("Send me a link");
    }
    visit.reads("//*[@id='gate-message']", "E-mail: was given in too many requests; wait for 15 minutes");
    visit.end(&[("/settings/v1/session", 401), ("/settings/v1/session/link", 400), ("/settings/v1/session/link", 429)]);
}

/// After the user chose Thai, the page is in Thai. It is still in Thai after it was loaded again.
#[test]
fn the_settings_page_can_be_switched_to_thai() {
    let visit = BrowserSession::of_owner();
    visit.reads("//*[@id='zone']", "Times are in the time zone ");
    visit.script("const list = document.querySelector('#language'); list.value = 'th'; list.dispatchEvent(new Event('change'))");
    visit.sees("//h2[.='คีย์ API']");
    visit.reload();
    visit.sees("//h2[.='คีย์ API']");
    assert_eq!(visit.script("return document.documentElement.lang"), "th");
    visit.press("สร้างคีย์");
    visit.fill("//dialog[@open]//input[@name='name']", "กุญแจ");
    visit.click(&box_of("labels:read"));
    visit.press("บันทึก");
    visit.press("เก็บไว้แล้ว");
    visit.reads("//*[@id='message']", "สร้างคีย์ “กุญแจ” แล้ว");
    visit.reads("//tr[.//strong[.='กุญแจ']]", "อ่าน labels");
    visit.end(&[]);
}

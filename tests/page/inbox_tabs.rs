//! The tabs of drafts, accounts and team on the settings page.

use serde_json::json;

use super::{ADDRESS, ANN, BO, DIALOG, REV_A, STORE, Visit, box_of, button};

/// An assistant's draft is edited and sent; another one, after which the contact wrote, is sent once the new message was shown; a third is
/// discarded.
#[test]
fn drafts_are_reviewed_beside_their_conversation() {
    let visit = Visit::begin();
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
    visit.end(&[("/settings/v1/drafts/release", 409)]);
}

#[test]
fn access_bridges_and_seats_are_kept_on_the_page() {
    let visit = Visit::of_owner();
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
    let seat = format!("//section[@id='team']//tr[.//code[.='{BO}']]");
    visit.misses(&format!("//section[@id='team']//tr[.//code[.='{ANN}']]//button"));
    visit.click(&button(&seat, "Remove"));
    visit.click(&button(DIALOG, "Remove"));
    visit.misses(&seat);
    visit.end(&[]);
}

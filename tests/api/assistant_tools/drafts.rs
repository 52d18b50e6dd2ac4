//! Tests of drafts that assistants make: if the server does not permit assistants to send, each message becomes a draft, which a user must
//! approve in the settings.

use serde_json::{Value, json};

use super::{Assistant, SENDING, SERVED};
use crate::settings::SettingsFixture;

fn to_free(text: &str) -> Value {
    json!({"conversationId": "conv-free", "text": text})
}

#[test]
fn a_draft_of_an_assistant_is_released_once_by_a_person() {
    let fixture = SettingsFixture::with(SERVED);
    let assistant = Assistant::of(&fixture.shop.api);
    let before = fixture.shop.messages("conv-free").len();
    let made = assistant.call("send_message", to_free("Hi"));
    assert!(made["status"] == "draft" && made["expiresAt"].is_string(), "{made}");
    assert_eq!(fixture.shop.messages("conv-free").len(), before, "nothing is sent");
    // A second call with the same arguments makes no second draft.
    assert_eq!(assistant.call("send_message", to_free("Hi"))["draftId"], made["draftId"]);
    let listed = fixture.get("/drafts").send().ok();
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&listed[0]["id"], &listed[0]["body"], &listed[0]["keyId"]),
        (&made["draftId"], &to_free("Hi"), &json!(fixture.shop.key.id))
    );
    let release = |confirmed: Option<&str>| {
        let mut body = json!({"draftId": made["draftId"]});
        if let Some(id) = confirmed {
            body["confirmedMessageId"] = json!(id);
        }
        fixture.call("POST", "/drafts/release").json(body).send()
    };
    release(None).ok();
    assert_eq!(fixture.shop.messages("conv-free").len(), before + 1);
    release(None).fails(409);
    assert_eq!(fixture.shop.messages("conv-free").len(), before + 1);
}

#[test]
fn a_draft_is_checked_as_the_send_would_be() {
    let fixture = SettingsFixture::with(SERVED);
    let assistant = Assistant::of(&fixture.shop.api);
    for (arguments, word) in
        [(json!({"conversationId": "nope", "text": "x"}), "list_tickets"), (json!({"conversationId": "conv-free"}), "`text`")]
    {
        let text = assistant.fails("send_message", arguments);
        assert!(text.contains(word), "{text}");
    }
    assert_eq!(fixture.get("/drafts").send().ok(), json!([]));
}

#[test]
fn a_caller_can_keep_its_own_messages_as_drafts() {
    let fixture = SettingsFixture::with(SENDING);
    let cautious = Assistant::of(&fixture.shop.api).with_header("x-mcp-drafts", "true");
    assert_eq!(cautious.call("send_message", to_free("Hi"))["status"], "draft");
    assert_eq!(Assistant::of(&fixture.shop.api).call("send_message", to_free("Hi"))["status"], "sent");
}

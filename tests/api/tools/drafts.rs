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
    let plane = SettingsFixture::with(SERVED);
    let assistant = Assistant::of(&plane.desk.api);
    let before = plane.desk.messages("conv-free").len();
    let made = assistant.call("send_message", to_free("Hi"));
    assert!(made["status"] == "draft" && made["expiresAt"].is_string(), "{made}");
    assert_eq!(plane.desk.messages("conv-free").len(), before, "nothing is sent");
    // A second call with the same arguments makes no second draft.
    assert_eq!(assistant.call("send_message", to_free("Hi"))["draftId"], made["draftId"]);
    let listed = plane.get("/drafts").send().ok();
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
    assert_eq!((&listed[0]["id"], &listed[0]["body"], &listed[0]["keyId"]), (&made["draftId"], &to_free("Hi"), &json!(plane.desk.key.id)));
    let release = |confirmed: Option<&str>| {
        let mut body = json!({"draftId": made["draftId"]});
        if let Some(id) = confirmed {
            body["confirmedMessageId"] = json!(id);
        }
        plane.call("POST", "/drafts/release").json(body).send()
    };
    release(None).ok();
    assert_eq!(plane.desk.messages("conv-free").len(), before + 1);
    release(None).fails(409);
    assert_eq!(plane.desk.messages("conv-free").len(), before + 1);
}

#[test]
fn a_draft_is_checked_as_the_send_would_be() {
    let plane = SettingsFixture::with(SERVED);
    let assistant = Assistant::of(&plane.desk.api);
    for (arguments, word) in
        [(json!({"conversationId": "nope", "text": "x"}), "list_tickets"), (json!({"conversationId": "conv-free"}), "`text`")]
    {
        let text = assistant.fails("send_message", arguments);
        assert!(text.contains(word), "{text}");
    }
    assert_eq!(plane.get("/drafts").send().ok(), json!([]));
}

#[test]
fn a_caller_can_keep_its_own_messages_as_drafts() {
    let plane = SettingsFixture::with(SENDING);
    let cautious = Assistant::of(&plane.desk.api).with_header("x-mcp-drafts", "true");
    assert_eq!(cautious.call("send_message", to_free("Hi"))["status"], "draft");
    assert_eq!(Assistant::of(&plane.desk.api).call("send_message", to_free("Hi"))["status"], "sent");
}

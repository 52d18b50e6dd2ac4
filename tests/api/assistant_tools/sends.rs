//! Tests of messages that assistants send: a repeated call sends no second message, and if the client can ask its user, a message is sent
//! only after the user's consent.

use serde_json::{Value, json};

use super::{Assistant, SENDING};
use crate::{REV_A, fixture::channels, writes::WriteFixture};

fn shop() -> (WriteFixture, Assistant) {
    let shop = WriteFixture::with_settings(&[("shop", channels())], SENDING);
    let assistant = Assistant::of(&shop.api);
    (shop, assistant)
}

/// The id of a WhatsApp conversation whose contact has not written for 24 hours, so that text messages are refused.
const CLOSED: &str = "conv-wa-late";

fn to_web(text: &str) -> Value {
    json!({"conversationId": "conv-web", "text": text})
}

fn texts(shop: &WriteFixture) -> usize {
    shop.messages("conv-web").len()
}

#[test]
fn an_identical_send_is_made_once_unless_a_repetition_is_requested() {
    let (shop, assistant) = shop();
    let before = texts(&shop);
    assert_eq!(assistant.call("send_message", to_web("Hi"))["status"], "sent");
    let again = assistant.call("send_message", to_web("Hi"));
    assert!(again["status"] == "sent" && again["note"].as_str().is_some_and(|note| note.contains("nothing was done again")), "{again}");
    assert_eq!(texts(&shop), before + 1);
    let mut repeated = to_web("Hi");
    repeated["repetition"] = json!(2);
    assert_eq!(assistant.call("send_message", repeated).get("note"), None);
    assert_eq!(texts(&shop), before + 2);
    // Ten concurrent calls with the same arguments send one message.
    let threads: Vec<_> = (0..10)
        .map(|_| {
            std::thread::spawn({
                let assistant = assistant.clone();
                move || assistant.called("send_message", to_web("Race"))
            })
        })
        .collect();
    for thread in threads {
        let result = thread.join().expect("the thread ends");
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        assert!(result["structuredContent"]["status"] == "sent" || text.contains("in progress"), "{result}");
    }
    assert_eq!(texts(&shop), before + 3);
}

#[test]
fn a_client_that_can_ask_the_user_sends_only_after_confirmation() {
    let (shop, assistant) = shop();
    let (assistant, before) = (assistant.that_asks(), texts(&shop));
    let ask = |text: &str| assistant.result("tools/call", json!({"name": "send_message", "arguments": to_web(text)}));
    let asked = ask("Hello\u{202e} there");
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let question = asked["inputRequests"]["send"]["params"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(
        question.contains("\n> Hello")
            && question.contains("conv-web")
            && question.contains("Hello[U+202E] there")
            && question.contains("widget"),
        "{question}"
    );
    assert_eq!(texts(&shop), before, "nothing is sent before the person decides");
    let reply = |asked: &Value, text: &str, reply: Value| {
        assistant.result(
            "tools/call",
            json!({"name": "send_message", "arguments": to_web(text), "requestState": asked["requestState"], "inputResponses": {"send": reply}}),
        )
    };
    for action in ["decline", "cancel"] {
        let result = reply(&asked, "Hello\u{202e} there", json!({"action": action}));
        assert_eq!(result["structuredContent"]["status"], "declined", "{result}");
    }
    assert_eq!(texts(&shop), before);
    // The client returns the server's `requestState` with the user's answer. The state is valid only for the arguments of the first call,
    // and cannot be forged.
    let other = reply(&asked, "Something else", json!({"action": "accept", "content": {}}));
    assert_eq!(other["isError"], true, "{other}");
    for state in [json!("forged"), json!("rs1.AAAA.BBBB")] {
        let forged = reply(&json!({"requestState": state}), "Hello\u{202e} there", json!({"action": "accept", "content": {}}));
        assert_eq!(forged["isError"], true, "{forged}");
    }
    for wrong in [json!({}), json!(null), json!({"action": "yes"}), json!([])] {
        assert_eq!(reply(&asked, "Hello\u{202e} there", wrong.clone())["isError"], true, "{wrong}");
    }
    assert_eq!(texts(&shop), before);
    let accepted = reply(&asked, "Hello\u{202e} there", json!({"action": "accept", "content": {}}));
    assert_eq!(accepted["structuredContent"]["status"], "sent", "{accepted}");
    assert_eq!(texts(&shop), before + 1);
    // The same answer of the user, sent again, sends no second message.
    reply(&asked, "Hello\u{202e} there", json!({"action": "accept", "content": {}}));
    assert_eq!(texts(&shop), before + 1);
    let long = ask(&"x".repeat(900));
    assert_eq!(long["resultType"], "input_required");
}

#[test]
fn errors_of_refused_sends_explain_what_to_correct() {
    let (_desk, assistant) = shop();
    let closed = assistant.fails("send_message", json!({"conversationId": CLOSED, "text": "Hi"}));
    assert!(closed.contains("24 hours") && (REV_A || closed.contains("templateId")) && !closed.contains("POST"), "{closed}");
    // If a message cannot be sent, the call fails immediately, and the user is not asked.
    let asking = assistant.clone().that_asks();
    for arguments in [json!({"conversationId": CLOSED, "text": "Hi"}), json!({"conversationId": "nope", "text": "Hi"})] {
        asking.fails("send_message", arguments);
    }
    for wrong in [json!(0), json!(-7), json!(2.5e9)] {
        let mut arguments = to_web("Hi");
        arguments["repetition"] = wrong.clone();
        assert!(assistant.fails("send_message", arguments).contains("repetition"), "{wrong}");
    }
    let nothing = assistant.fails("send_message", json!({"conversationId": "conv-web"}));
    assert!(nothing.contains("`text`"), "{nothing}");
    let unknown = assistant.fails("send_message", json!({"conversationId": "conv-web", "text": "x", "txt": "y"}));
    assert!(unknown.contains("no member `txt`"), "{unknown}");
    let typed = assistant.fails("send_message", json!({"conversationId": 7, "text": "x"}));
    assert!(typed.contains("`conversationId` must be of the type string"), "{typed}");
}

#[test]
fn a_confirmation_question_shows_what_is_sent_and_cannot_be_spoofed() {
    if REV_A {
        return;
    }
    let (_desk, assistant) = shop();
    let mixed = json!({"accountId": "acc-wa", "phoneNumber": "+66844444444", "templateId": "tpl-APPROVED", "text": "never sent"});
    assert!(assistant.fails("start_conversation", mixed.clone()).contains("`text`"));
    let asking = assistant.that_asks();
    assert!(asking.fails("start_conversation", mixed).contains("`text`"));
    let faked = json!({"conversationId": "conv-mail", "to": ["eva@example.com"], "subject": "Hi", "text": "x\n\nsubject: fake\r\n> y"});
    let asked = asking.result("tools/call", json!({"name": "send_message", "arguments": faked}));
    let question = asked["inputRequests"]["send"]["params"]["message"].as_str().unwrap_or_default().to_owned();
    assert_eq!(question.lines().filter(|line| line.starts_with("subject")).count(), 1, "{question}");
    assert!(question.contains("\n> subject: fake[U+000D]\n> > y"), "{question}");
}

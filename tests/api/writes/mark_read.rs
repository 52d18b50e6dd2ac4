//! Tests of POST /conversations/mark-read: the cleared unread count, and which conversations are refused.

use serde_json::json;

use super::{WriteFixture, acknowledged, without};

#[test]
fn the_unread_count_is_cleared_and_stays_cleared() {
    let desk = WriteFixture::open();
    let before = desk.conversation("conv-free");
    assert_eq!(before["unreadMsgCnt"], 3);
    desk.read("conv-free").is(acknowledged());
    let after = desk.conversation("conv-free");
    assert_eq!(after["unreadMsgCnt"], 0);
    let rest = ["unreadMsgCnt", "updatedAt"];
    assert_eq!(without(after, &rest), without(before, &rest));
    desk.assert_unchanged(|| desk.read("conv-free").is(acknowledged()));
}

#[test]
fn a_snoozed_or_spam_ticket_is_open_too() {
    let desk = WriteFixture::open();
    for id in ["conv-asleep", "conv-spam"] {
        desk.read(id).is(acknowledged());
        assert_eq!(desk.conversation(id)["unreadMsgCnt"], 0);
    }
}

#[test]
fn a_conversation_without_an_open_ticket_is_not_found() {
    let desk = WriteFixture::open();
    desk.assert_unchanged(|| {
        for id in ["conv-shut", "conv-bare", "nobody"] {
            desk.read(id).fails(404);
        }
    });
    desk.close(json!({"ticketId": "t-free"})).ok();
    desk.read("conv-free").fails(404);
    assert_eq!(desk.conversation("conv-free")["unreadMsgCnt"], 3);
}

#[test]
fn a_body_of_the_wrong_shape_is_refused() {
    let desk = WriteFixture::open();
    desk.assert_unchanged(|| {
        for (body, field) in [
            (json!({}), "body.conversationId"),
            (json!({"conversationId": null}), "body.conversationId"),
            (json!({"conversationId": ["conv-free"]}), "body.conversationId"),
            (json!({"conversationId": "conv-free", "ticketId": "t-free"}), "body.ticketId"),
        ] {
            desk.post("/conversations/mark-read", body).send().refuses(field);
        }
    });
}

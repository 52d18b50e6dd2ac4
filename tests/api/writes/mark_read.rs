//! Tests of POST /conversations/mark-read: the cleared unread count, and which conversations are refused.

use serde_json::json;

use super::{WriteFixture, acknowledged, without};

#[test]
fn mark_read_clears_the_unread_count_and_a_repeat_changes_nothing() {
    let shop = WriteFixture::open();
    let before = shop.conversation("conv-free");
    assert_eq!(before["unreadMsgCnt"], 3);
    shop.read("conv-free").is(acknowledged());
    let after = shop.conversation("conv-free");
    assert_eq!(after["unreadMsgCnt"], 0);
    let rest = ["unreadMsgCnt", "updatedAt"];
    assert_eq!(without(after, &rest), without(before, &rest));
    shop.assert_unchanged(|| shop.read("conv-free").is(acknowledged()));
}

#[test]
fn mark_read_treats_a_snoozed_or_spam_ticket_as_open() {
    let shop = WriteFixture::open();
    for id in ["conv-asleep", "conv-spam"] {
        shop.read(id).is(acknowledged());
        assert_eq!(shop.conversation(id)["unreadMsgCnt"], 0);
    }
}

#[test]
fn a_conversation_without_an_open_ticket_is_not_found() {
    let shop = WriteFixture::open();
    shop.assert_unchanged(|| {
        for id in ["conv-shut", "conv-bare", "nobody"] {
            shop.read(id).fails(404);
        }
    });
    shop.close(json!({"ticketId": "t-free"})).ok();
    shop.read("conv-free").fails(404);
    assert_eq!(shop.conversation("conv-free")["unreadMsgCnt"], 3);
}

#[test]
fn a_body_of_the_wrong_shape_is_refused() {
    let shop = WriteFixture::open();
    shop.assert_unchanged(|| {
        for (body, field) in [
            (json!({}), "body.conversationId"),
            (json!({"conversationId": null}), "body.conversationId"),
            (json!({"conversationId": ["conv-free"]}), "body.conversationId"),
            (json!({"conversationId": "conv-free", "ticketId": "t-free"}), "body.ticketId"),
        ] {
            shop.post("/conversations/mark-read", body).send().refuses(field);
        }
    });
}

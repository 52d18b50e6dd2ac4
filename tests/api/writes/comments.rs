//! Tests of POST /messages/internal-comments: the added comment, its author, and what a comment leaves unchanged.

use serde_json::json;

use super::{WriteFixture, acknowledged, stamp};
use crate::{
    REV_A,
    client::Api,
    fixture::{ANN, BO, NAMELESS, write_store as lines},
};

#[test]
fn a_comment_is_added_and_changes_nothing_else() {
    let shop = WriteFixture::open();
    let (conversation, ticket) = (shop.conversation("conv-free"), shop.ticket("t-free"));
    let text = format!("  Ask <@<{BO}>:Bo@> and <@<{BO}>:Bo@>\n\"ไทย\" <b>\u{202e} ");
    shop.comment("conv-free", &text).is(acknowledged());
    let comments = shop.comments("conv-free");
    let [comment] = &comments[..] else { panic!("one comment: {comments:?}") };
    let sent = stamp(comment, "sentAt");
    assert_eq!(
        *comment,
        json!({
            "id": comment["id"], "conversationId": "conv-free", "accountId": "acc-line", "sentAt": sent, "createdAt": sent,
            "updatedAt": sent, "noteData": {"text": text, "createdBy": ANN},
        })
    );
    // A comment adds no message, and changes neither the conversation nor the ticket.
    assert_eq!((shop.conversation("conv-free"), shop.ticket("t-free")), (conversation, ticket));
    shop.api.get("/messages").query("conversationId", "conv-free").query("pageSize", 5).send().lists(&["m-1"]);
    assert_eq!(shop.kinds(), Vec::<String>::new());
}

#[test]
fn comments_are_listed_newest_first_and_may_have_equal_texts() {
    let shop = WriteFixture::open();
    for text in ["one", "two", "two", "three"] {
        shop.comment("conv-bare", text).ok();
    }
    let texts: Vec<_> = shop.comments("conv-bare").iter().map(|comment| comment["noteData"]["text"].clone()).collect();
    assert_eq!(texts, ["three", "two", "two", "one"]);
}

#[test]
fn the_author_is_the_user_of_the_key_or_else_the_oldest_owner() {
    let shop = WriteFixture::open();
    for user in [BO, NAMELESS] {
        let arguments = ["key", "create", "--store", "desk", "--name", "Own", "--scopes", "messages:write", "--user", user];
        let api: Api = shop.api.with_key(&shop.server.database.run(&arguments));
        api.post("/messages/internal-comments", json!({"conversationId": "conv-free", "text": user})).send().ok();
        assert_eq!(shop.comments("conv-free")[0]["noteData"], json!({"text": user, "createdBy": user}));
    }
    shop.comment("conv-free", "by the store's own").ok();
    assert_eq!(shop.comments("conv-free")[0]["noteData"]["createdBy"], ANN);
}

#[test]
fn a_store_without_an_owner_needs_a_key_with_a_user() {
    let mut lines = lines();
    lines.retain(|line| line["record"]["roleId"] != "role-owner");
    let shop = WriteFixture::with(&[("desk", lines)]);
    shop.assert_unchanged(|| shop.comment("conv-free", "x").fails(400));
    let arguments = ["key", "create", "--store", "desk", "--name", "Own", "--scopes", "messages:write", "--user", BO];
    let api = shop.api.with_key(&shop.server.database.run(&arguments));
    api.post("/messages/internal-comments", json!({"conversationId": "conv-free", "text": "x"})).send().ok();
}

#[test]
fn only_the_older_revision_accepts_an_empty_comment() {
    let shop = WriteFixture::open();
    if REV_A {
        shop.comment("conv-free", "").is(acknowledged());
        assert_eq!(shop.comments("conv-free")[0]["noteData"]["text"], "");
    } else {
        shop.assert_unchanged(|| shop.comment("conv-free", "").refuses("body.text"));
    }
}

#[test]
fn any_conversation_takes_a_comment_and_an_unknown_one_is_not_found() {
    let shop = WriteFixture::open();
    for id in ["conv-shut", "conv-spam", "conv-bare", "conv-ann"] {
        shop.comment(id, "x").is(acknowledged());
        assert_eq!(shop.comments(id).len(), 1);
    }
    shop.assert_unchanged(|| shop.comment("nobody", "x").fails(404));
}

#[test]
fn a_body_of_the_wrong_shape_is_refused() {
    let shop = WriteFixture::open();
    shop.assert_unchanged(|| {
        for (body, field) in [
            (json!({"text": "x"}), "body.conversationId"),
            (json!({"conversationId": "conv-free"}), "body.text"),
            (json!({"conversationId": "conv-free", "text": null}), "body.text"),
            (json!({"conversationId": "conv-free", "text": 5}), "body.text"),
            (json!({"conversationId": "conv-free", "text": {"text": "x"}}), "body.text"),
            (json!({"conversationId": null, "text": "x"}), "body.conversationId"),
            (json!({"conversationId": "conv-free", "text": "x", "createdBy": ANN}), "body.createdBy"),
        ] {
            shop.post("/messages/internal-comments", body).send().refuses(field);
        }
    });
}

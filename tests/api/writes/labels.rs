//! Tests of PATCH /conversations/labels: added and removed labels, limits, and unknown labels.

use serde_json::{Value, json};

use super::{WriteFixture, acknowledged, refuses_in, stamp, without};
use crate::{REV_A, fixture::at};

const TEN: [&str; 10] = ["lab-0", "lab-1", "lab-2", "lab-3", "lab-4", "lab-5", "lab-6", "lab-7", "lab-8", "lab-9"];

/// Returns the ids of the labels of a conversation, sorted.
#[track_caller]
fn labels(shop: &WriteFixture, conversation: &str) -> Vec<String> {
    let ids = shop.conversation(conversation)["labelIds"].clone();
    let mut ids: Vec<String> = serde_json::from_value(ids).unwrap_or_default();
    ids.sort_unstable();
    ids
}

#[test]
fn labels_are_added_and_removed() {
    let shop = WriteFixture::open();
    let before = shop.conversation("conv-free");
    shop.label("conv-free", &["lab-c"], &["lab-a"]).is(acknowledged());
    assert_eq!(labels(&shop, "conv-free"), ["lab-b", "lab-c"]);
    let after = shop.conversation("conv-free");
    assert!(stamp(&after, "updatedAt") > stamp(&before, "updatedAt"));
    let moved = ["labelIds", "updatedAt"];
    assert_eq!(without(after, &moved), without(before, &moved));
}

#[test]
fn a_present_label_added_or_an_absent_one_removed_changes_nothing() {
    let shop = WriteFixture::open();
    shop.assert_unchanged(|| {
        shop.label("conv-free", &["lab-a"], &[]).is(acknowledged());
        shop.label("conv-free", &["lab-a", "lab-b"], &["lab-c", "lab-0"]).is(acknowledged());
    });
    // A request may add a label that the conversation has, and remove a label that it lacks. These changes have no effect; the other
    // changes of the request still happen.
    shop.label("conv-free", &["lab-a", "lab-1"], &["lab-c", "lab-b"]).is(acknowledged());
    assert_eq!(labels(&shop, "conv-free"), ["lab-1", "lab-a"]);
    assert_eq!(shop.events().len(), 2);
}

#[test]
fn a_conversation_without_an_open_ticket_takes_labels() {
    let shop = WriteFixture::open();
    for id in ["conv-bare", "conv-shut", "conv-spam"] {
        shop.label(id, &["lab-a"], &[]).is(acknowledged());
        assert_eq!(labels(&shop, id), ["lab-a"]);
    }
}

#[test]
fn at_most_ten_labels_are_added_and_ten_removed() {
    let shop = WriteFixture::open();
    let eleven = [&TEN[..], &["lab-c"]].concat();
    shop.assert_unchanged(|| {
        shop.label("conv-free", &eleven, &[]).refuses("body.addLabels");
        shop.label("conv-free", &["lab-c"], &[&TEN[..], &["lab-a"]].concat()).refuses("body.removeLabels");
    });
    shop.label("conv-free", &TEN, &[]).is(acknowledged());
    assert_eq!(labels(&shop, "conv-free").len(), 12);
    shop.label("conv-free", &["lab-a"], &TEN).is(acknowledged());
    assert_eq!(labels(&shop, "conv-free"), ["lab-a", "lab-b"]);
}

#[test]
fn the_newer_revision_requires_labels_to_add() {
    let shop = WriteFixture::open();
    if REV_A {
        shop.label("conv-free", &[], &["lab-a"]).is(acknowledged());
        assert_eq!(labels(&shop, "conv-free"), ["lab-b"]);
        let body = json!({"conversationId": "conv-free", "addLabels": [], "removeLabels": ["lab-b"]});
        shop.patch("/conversations/labels", body).send().is(acknowledged());
        assert_eq!(labels(&shop, "conv-free"), Vec::<String>::new());
    } else {
        shop.assert_unchanged(|| {
            shop.label("conv-free", &[], &["lab-a"]).refuses("body.addLabels");
            let body = json!({"conversationId": "conv-free", "addLabels": [], "removeLabels": ["lab-a"]});
            shop.patch("/conversations/labels", body).send().refuses("body.addLabels");
            shop.label("conv-free", &[], &[]).refuses("body.addLabels");
        });
        let body = json!({"conversationId": "conv-free", "addLabels": ["lab-c"], "removeLabels": []});
        shop.patch("/conversations/labels", body).send().is(acknowledged());
    }
}

#[test]
fn a_request_without_labels_is_refused() {
    let shop = WriteFixture::open();
    shop.assert_unchanged(|| {
        for body in [
            json!({"conversationId": "conv-free"}),
            json!({"conversationId": "conv-free", "addLabels": []}),
            json!({"conversationId": "conv-free", "addLabels": [], "removeLabels": []}),
        ] {
            refuses_in(&shop.patch("/conversations/labels", body).send(), "body");
        }
    });
}

#[test]
fn an_unknown_label_is_refused_in_the_newer_revision_and_ignored_in_the_older() {
    let shop = WriteFixture::open();
    if REV_A {
        shop.assert_unchanged(|| {
            shop.label("conv-free", &["nothing"], &[]).is(acknowledged());
            shop.label("conv-free", &[], &["nothing"]).is(acknowledged());
        });
        shop.label("conv-free", &["nothing", "lab-c"], &["nobody"]).is(acknowledged());
        assert_eq!(labels(&shop, "conv-free"), ["lab-a", "lab-b", "lab-c"]);
    } else {
        shop.assert_unchanged(|| {
            refuses_in(&shop.label("conv-free", &["nothing"], &[]), "body.addLabels");
            refuses_in(&shop.label("conv-free", &["lab-c", "nothing"], &["lab-a"]), "body.addLabels");
            refuses_in(&shop.label("conv-free", &["lab-c"], &["nothing"]), "body.removeLabels");
        });
    }
}

#[test]
fn a_request_that_adds_and_removes_the_same_label_is_refused() {
    let shop = WriteFixture::open();
    shop.assert_unchanged(|| {
        for label in ["lab-a", "lab-c"] {
            refuses_in(&shop.label("conv-free", &["lab-1", label], &[label]), "body.");
        }
    });
}

#[test]
fn an_unknown_conversation_is_not_found() {
    let shop = WriteFixture::open();
    shop.label("nobody", &["lab-a"], &[]).fails(404);
    // An unknown conversation causes a 404 before an unknown label is refused.
    shop.label("nobody", &["nothing"], &[]).fails(404);
}

#[test]
fn a_body_of_the_wrong_shape_is_refused() {
    let shop = WriteFixture::open();
    shop.assert_unchanged(|| {
        for (body, field) in [
            (json!({"addLabels": ["lab-c"]}), "body.conversationId"),
            (json!({"conversationId": "conv-free", "addLabels": "lab-c"}), "body.addLabels"),
            (json!({"conversationId": "conv-free", "addLabels": null}), "body.addLabels"),
            (json!({"conversationId": "conv-free", "addLabels": ["lab-c"], "removeLabels": null}), "body.removeLabels"),
            (json!({"conversationId": "conv-free", "addLabels": ["lab-c", 5]}), "body.addLabels[1]"),
            (json!({"conversationId": "conv-free", "addLabels": ["lab-c", Value::Null]}), "body.addLabels[1]"),
            (json!({"conversationId": "conv-free", "addLabels": ["lab-c"], "removeLabels": [["lab-a"]]}), "body.removeLabels[0]"),
            (json!({"conversationId": "conv-free", "addLabels": ["lab-c"], "labels": []}), "body.labels"),
        ] {
            shop.patch("/conversations/labels", body).send().refuses(field);
        }
    });
    assert_eq!(stamp(&shop.conversation("conv-free"), "updatedAt"), at("03-01T07:00"));
}

//! Tests of GET /messages/internal-comments: the properties of a comment, the order of the list, and missing or unknown conversations.

use serde_json::json;

use crate::{
    fixture::{ANN, BO, at},
    harness::one,
};

fn comments(conversation: &str) -> crate::client::Call {
    one().get("/messages/internal-comments").query("conversationId", conversation)
}

#[test]
fn a_comment_shows_its_note_and_its_author() {
    let sent = at("03-05T10:00");
    assert_eq!(
        comments("conv-main").send().row("n-1"),
        json!({
            "id": "n-1", "conversationId": "conv-main", "accountId": "acc-line", "sentAt": sent, "createdAt": sent, "updatedAt": sent,
            "noteData": {"text": format!("Ask <@<{BO}>:Bo@>"), "createdBy": ANN},
        })
    );
}

#[test]
fn comments_come_newest_first() {
    let answer = comments("conv-main").send();
    answer.lists(&["n-3", "n-2", "n-1"]);
    assert_eq!(answer.header("x-pagination-page-size"), Some("20"));
}

#[test]
fn a_conversation_without_comments_has_an_empty_page() {
    comments("conv-mail").send().lists(&[]);
}

#[test]
fn a_conversation_is_required_and_an_unknown_one_is_not_found() {
    one().get("/messages/internal-comments").send().refuses("conversationId");
    comments("nobody").send().fails(404);
}

//! Tests of GET /accounts, which only the newer revision of the API has: the order of the accounts, and the filter by channel.

use serde_json::json;

use crate::{REV_A, client::Answer, fixture::at, harness::one};

fn accounts(channel: &str) -> Answer {
    one().get("/accounts").query("channel", channel).send()
}

#[test]
fn the_older_revision_has_no_accounts() {
    let answer = one().get("/accounts").send();
    if REV_A {
        answer.fails(404);
    } else {
        answer.ok();
    }
}

#[test]
fn active_accounts_come_oldest_first() {
    if REV_A {
        return;
    }
    let answer = one().get("/accounts").send();
    answer.lists(&["acc-line", "acc-mail", "acc-wa", "acc-drunk", "acc-widget", "acc-lab", "acc-tie", "acc-wa-bare"]);
    assert_eq!(answer.header("x-pagination-page-size"), Some("20"));
    assert_eq!(
        answer.row("acc-line"),
        json!({
            "id": "acc-line", "channel": "line", "name": "LINE shop", "status": "healthy", "lastAuthorizedAt": at("01-01T00:00"),
            "metadata": {"userName": "@shop", "country": "TH", "followerCount": 12, "nested": {"kept": [1, "two"]}},
        })
    );
    for (id, status) in [("acc-mail", "degraded"), ("acc-drunk", "restricted"), ("acc-widget", "reauthorization_required")] {
        assert_eq!(answer.row(id)["status"], status);
    }
}

#[test]
fn accounts_are_filtered_by_channel() {
    if REV_A {
        return;
    }
    accounts("whatsapp").lists(&["acc-wa", "acc-wa-bare"]);
    accounts("drunken_lullabies").lists(&["acc-drunk"]);
    accounts("facebook").lists(&[]);
    for unknown in ["pigeon", "LINE", "", " line"] {
        accounts(unknown).refuses("channel");
    }
}

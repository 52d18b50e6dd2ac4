//! Tests of GET /accounts/whatsapp-templates, which only the newer revision of the API has: the order, the search and the filters of the
//! list.

use serde_json::json;

use crate::{REV_A, client::Call, harness::one};

fn templates() -> Call {
    one().get("/accounts/whatsapp-templates").query("accountId", "acc-wa")
}

#[test]
fn the_older_revision_has_no_templates() {
    let answer = templates().send();
    if REV_A {
        answer.fails(404);
    } else {
        answer.ok();
    }
}

#[test]
fn at_most_one_hundred_templates_come_by_name_and_id() {
    if REV_A {
        return;
    }
    let answer = templates().send();
    let ids = answer.ids();
    assert_eq!(ids.len(), 100);
    assert_eq!(ids[..5], ["tpl-hello-en", "tpl-hello-th", "tpl-code", "tpl-sale", "tpl-000"]);
    assert_eq!(ids[99], "tpl-095");
    assert!(!answer.headers.iter().any(|(name, _)| name.starts_with("x-pagination")), "{}", answer.described());
    assert_eq!(
        answer.row("tpl-code"),
        json!({
            "id": "tpl-code", "name": "b_code", "parameter_format": "POSITIONAL", "language": "en", "status": "APPROVED",
            "category": "AUTHENTICATION", "components": [{"type": "BODY", "text": "Your code: {{1}}"}],
        })
    );
}

#[test]
fn templates_are_searched_by_name_and_body() {
    if REV_A {
        return;
    }
    for (search, expected) in [
        ("HELLO", &["tpl-hello-en", "tpl-hello-th"][..]),
        ("your order", &["tpl-hello-en"]),
        ("big SALE", &["tpl-sale"]),
        ("สวัสดี", &["tpl-hello-th"]),
        ("bulk_099", &["tpl-099"]),
        ("0% o", &["tpl-sale"]),
        ("b%code", &[]),
    ] {
        templates().query("search", search).send().lists(expected);
    }
    assert_eq!(templates().query("search", "  ").send().ids().len(), 100);
}

#[test]
fn templates_are_chosen_by_language_status_and_category() {
    if REV_A {
        return;
    }
    templates().query("language", "th").send().lists(&["tpl-hello-th"]);
    templates().query("language", "en").query("category", "UTILITY").send().lists(&["tpl-hello-en"]);
    templates().query("status", "REJECTED").send().lists(&["tpl-sale"]);
    templates().query("status", "APPROVED").query("search", "hello").send().lists(&["tpl-hello-th"]);
    templates().query("language", "xx").send().lists(&[]);
    for (name, value) in [("status", "approved"), ("status", "FINE"), ("category", "NEWS"), ("category", "")] {
        templates().query(name, value).send().refuses(name);
    }
}

#[test]
fn templates_need_a_whatsapp_account_of_the_store() {
    if REV_A {
        return;
    }
    let of = |account: &str| one().get("/accounts/whatsapp-templates").query("accountId", account).send();
    of("acc-wa-bare").lists(&[]);
    of("acc-line").refuses("accountId");
    of("nobody").fails(404);
    of("acc-two").fails(404);
    one().get("/accounts/whatsapp-templates").send().refuses("accountId");
}

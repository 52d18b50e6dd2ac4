//! Tests of cursor pagination on every paginated operation except the searches: complete pages, page sizes, and valid and invalid cursors.

use serde_json::json;

use crate::{
    REV_A,
    client::{Answer, Call},
    harness::{one, world},
    pagination_client::{next, pages, walk},
};

const MAX: usize = if REV_A { 50 } else { 100 };

/// One paginated list: the request that reads it, its largest page size, and its number of rows.
struct List {
    name: &'static str,
    call: Call,
    max: usize,
    rows: usize,
}

fn lists() -> Vec<List> {
    let list = |name, call, rows| List { name, call, max: MAX, rows };
    let all_tickets = json!({"statuses": ["open", "closed"]});
    let mut all = vec![
        list("tickets", one().post("/tickets/list", all_tickets), 19),
        list("tied tickets", one().post("/tickets/list", json!({"accountIds": ["acc-tie"]})), 6),
        list("conversations", one().get("/conversations").query("contactId", "con-busy"), 10),
        list("contacts", one().post("/contacts/list", json!({})), 8),
        list("comments", one().get("/messages/internal-comments").query("conversationId", "conv-main"), 3),
        list("labels", one().get("/labels"), 7),
        list("teams", one().get("/teams"), 4),
        List {
            name: "messages",
            call: one().get("/messages").query("conversationId", "conv-main"),
            max: if REV_A { 15 } else { MAX },
            rows: 8,
        },
    ];
    if !REV_A {
        all.push(list("accounts", one().get("/accounts"), 8));
    }
    all
}

#[test]
fn the_pages_hold_every_row_once_whatever_the_page_size() {
    for list in lists() {
        let whole = list.call.clone().query("pageSize", list.max).send().ids();
        assert_eq!(whole.len(), list.rows, "{}: {whole:?}", list.name);
        for size in [1, 2, 3, list.rows - 1, list.rows, list.rows + 1] {
            if size > 0 && size <= list.max {
                assert_eq!(walk(&list.call, size), whole, "{} by {size}", list.name);
            }
        }
    }
}

#[test]
fn every_page_but_the_last_is_full_and_carries_a_cursor() {
    for list in lists() {
        for size in [1, 2, 3, list.rows] {
            let all = pages(&list.call, Some(size));
            assert_eq!(all.len(), list.rows.div_ceil(size), "{} by {size}: an exact multiple ends without an empty page", list.name);
            for (page, answer) in all.iter().enumerate() {
                let left = list.rows - page * size;
                assert_eq!(answer.ids().len(), left.min(size), "{}", answer.described());
                assert_eq!(answer.header("x-pagination-page-size"), Some(size.to_string().as_str()), "{}", answer.described());
                assert_eq!(next(answer).is_some(), left > size, "{}", answer.described());
            }
        }
    }
}

#[test]
fn page_and_total_are_headers_of_the_older_revision_alone() {
    for list in lists() {
        for answer in pages(&list.call, Some(2)) {
            let expected = REV_A.then(|| (list.rows.to_string(), "1".to_owned()));
            let total = answer.header("x-pagination-total").map(str::to_owned);
            let page = answer.header("x-pagination-page").map(str::to_owned);
            assert_eq!(total.zip(page), expected, "{}", answer.described());
        }
    }
}

#[test]
fn the_page_parameter_is_echoed_and_has_no_other_effect() {
    for list in lists() {
        let first = list.call.clone().query("pageSize", 2).send();
        let answer = list.call.clone().query("pageSize", 2).query("page", 2).send();
        assert_eq!(answer.ids(), first.ids(), "{}", list.name);
        assert_eq!(answer.header("x-pagination-page"), REV_A.then_some("2"), "{}", answer.described());
    }
}

#[test]
fn the_page_parameter_is_a_positive_integer_in_the_older_revision() {
    for list in lists() {
        for bad in ["0", "-1", "1.0", "%2B1", "", "a", "1000000000000000"] {
            let answer = list.call.clone().query("pageSize", 2).raw_query(&format!("page={bad}")).send();
            if REV_A {
                answer.refuses("page");
            } else {
                answer.ok();
            }
        }
    }
}

#[test]
fn page_sizes_run_from_one_to_the_maximum() {
    for list in lists() {
        for good in [1, list.max] {
            let answer = list.call.clone().query("pageSize", good).send();
            answer.ok();
            assert_eq!(answer.header("x-pagination-page-size"), Some(good.to_string().as_str()), "{}", answer.described());
        }
        let above = (list.max + 1).to_string();
        for bad in ["0", "-1", &above, "100000000000000000000", "%2B5", "5%20", "10.0", "1e1", "0x5", "", "ten", "null", "٣"] {
            list.call.clone().raw_query(&format!("pageSize={bad}")).send().refuses("pageSize");
        }
        list.call.clone().raw_query("pageSize=2&pageSize=2").send().refuses("pageSize");
    }
}

#[test]
fn twenty_rows_is_a_page_when_no_size_is_sent() {
    for list in lists().into_iter().filter(|list| list.name != "messages") {
        let answer = list.call.send();
        assert_eq!(answer.header("x-pagination-page-size"), Some("20"), "{}", answer.described());
    }
}

#[test]
fn an_empty_cursor_is_the_first_page() {
    for list in lists() {
        let first = list.call.clone().query("pageSize", 2).send();
        let answer = list.call.clone().query("pageSize", 2).raw_query("cursor=").send();
        // The cursors of the two responses differ, because a cursor contains the time at which its page was read. So the test compares the
        // pages that the cursors lead to.
        let second =
            |answer: &Answer| list.call.clone().query("pageSize", 2).query("cursor", next(answer).expect("a second page")).send().ids();
        assert_eq!((answer.ids(), second(&answer)), (first.ids(), second(&first)), "{}", list.name);
    }
}

#[test]
fn a_cursor_can_be_used_again_and_needs_no_escaping() {
    for list in lists() {
        let cursor = next(&list.call.clone().query("pageSize", 2).send()).expect("a second page");
        assert!(cursor.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)), "{}: {cursor}", list.name);
        let again = || list.call.clone().query("pageSize", 2).raw_query(&format!("cursor={cursor}")).send();
        assert_eq!(again().ids(), again().ids(), "{}", list.name);
    }
}

#[test]
fn a_cursor_is_not_bound_to_expand_or_key() {
    let call = one().post("/tickets/list", json!({})).query("pageSize", 2);
    let cursor = next(&call.clone().send()).expect("a second page");
    let plain = call.clone().query("cursor", &cursor).send().ids();
    assert_eq!(call.clone().query("cursor", &cursor).query("expand", "account").send().ids(), plain);
    let other = world().server.api("one", &["tickets:read"]);
    assert_eq!(other.post("/tickets/list", json!({})).query("pageSize", 2).query("cursor", &cursor).send().ids(), plain);
}

#[test]
fn a_cursor_that_was_tampered_with_is_refused() {
    for list in lists() {
        let call = || list.call.clone().query("pageSize", 2);
        let cursor = next(&call().send()).expect("a second page");
        for at in [0, cursor.len() / 3, cursor.len() / 2, cursor.len() - 2] {
            let mut bytes = cursor.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            call().query("cursor", String::from_utf8_lossy(&bytes)).send().refuses("cursor");
        }
        for bad in [&cursor[1..], &cursor[..cursor.len() - 4], "abc", "====", "é", &format!("{cursor}AAAA"), &"A".repeat(3000)] {
            call().query("cursor", bad).send().refuses("cursor");
        }
        call().query("cursor", &cursor).query("cursor", &cursor).send().refuses("cursor");
    }
}

#[test]
fn a_cursor_of_another_endpoint_is_refused() {
    let all = lists();
    for list in &all {
        let cursor = next(&list.call.clone().query("pageSize", 2).send()).expect("a second page");
        for other in all.iter().filter(|other| other.name != list.name && !other.name.ends_with("tickets")) {
            other.call.clone().query("pageSize", 2).query("cursor", &cursor).send().refuses("cursor");
        }
    }
}

#[test]
fn a_cursor_of_another_store_is_refused() {
    let of = |api: &crate::client::Api| api.get("/labels").query("pageSize", 1);
    let cursor = next(&of(one()).send()).expect("a second page");
    of(&world().two).query("cursor", cursor).send().refuses("cursor");
}

/// Sends a request whose cursor was created with other filters or another page size. Asserts that revision A accepts the cursor and
/// revision B refuses it.
#[track_caller]
fn check_changed_request(call: Call) {
    let answer = call.send();
    if REV_A {
        answer.ok();
    } else {
        answer.refuses("cursor");
    }
}

#[test]
fn a_cursor_with_another_page_size_is_refused_by_the_newer_revision() {
    for list in lists() {
        let cursor = next(&list.call.clone().query("pageSize", 2).send()).expect("a second page");
        check_changed_request(list.call.clone().query("pageSize", 3).query("cursor", &cursor));
    }
}

#[test]
fn a_cursor_with_other_filters_is_refused_by_the_newer_revision() {
    let get = |path: &str| one().get(path).query("pageSize", 1);
    let tickets = |body| one().post("/tickets/list", body).query("pageSize", 1);
    let contacts = |body| one().post("/contacts/list", body).query("pageSize", 1);
    for (call, changed) in [
        (tickets(json!({})), tickets(json!({"isFollowUp": false}))),
        (tickets(json!({"accountIds": ["acc-tie"]})), tickets(json!({"accountIds": ["acc-tie", "acc-lab"]}))),
        (contacts(json!({})), contacts(json!({"search": "e"}))),
        (get("/conversations").query("contactId", "con-busy"), get("/conversations").query("contactId", "con-mia")),
        (get("/messages").query("conversationId", "conv-main"), get("/messages").query("ticketId", "t-third")),
        (get("/labels"), get("/labels").query("searchTerm", "tied")),
    ] {
        let cursor = next(&call.clone().send()).expect("a second page");
        call.query("cursor", &cursor).send().ok();
        check_changed_request(changed.query("cursor", &cursor));
    }
}

#[test]
fn the_formatting_of_a_body_does_not_matter_to_a_cursor() {
    let call = |body: &str| one().call("POST", "/tickets/list").query("pageSize", 2).bytes(body);
    let cursor = next(&call(r#"{"isFollowUp":false,"statuses":["open","closed"]}"#).send()).expect("a second page");
    call(r#" { "statuses" : ["open", "closed"], "isFollowUp": false } "#).query("cursor", &cursor).send().ok();
}

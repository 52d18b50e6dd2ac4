//! Tests of request bodies of the wrong JSON shape: shapes that serde (the JSON library) would accept, and shapes for which the API's error
//! message must say more than serde's. Also tests user ids in capital letters, parameters that are not UTF-8, and HEAD requests.

use serde_json::json;

use crate::harness::one;

#[test]
fn arrays_are_refused_as_objects_and_objects_as_enumeration_values() {
    let none = json!(null);
    let positional = json!([["closed"], none, none, none, none, none, none, none, none, none]);
    one().post("/tickets/list", positional).send().refuses("body");
    one().post("/contacts/list", json!(["mal", null, null])).send().refuses("body");
    for (body, field) in [
        (json!({"advancedFilters": {"labels": ["contains_any", ["l1"]]}}), "body.advancedFilters.labels"),
        (json!({"statuses": [{"open": null}]}), "body.statuses[0]"),
        (json!({"statuses": [null]}), "body.statuses[0]"),
        (json!({"statuses": [1]}), "body.statuses[0]"),
        (json!({"advancedFilters": {"labels": {"operator": null, "labelIds": ["a"]}}}), "body.advancedFilters.labels.operator"),
    ] {
        one().post("/tickets/list", body).send().refuses(field);
    }
}

#[test]
fn an_error_names_an_unknown_member_even_with_a_dotted_or_empty_name() {
    one().post("/tickets/list", json!({"a.b": 1})).send().refuses("body.a.b");
    one().post("/tickets/list", json!({"": 1})).send().refuses("body.");
}

#[test]
fn a_whole_number_may_be_written_with_a_fraction_of_zero() {
    one().post("/tickets/list", json!({"advancedFilters": {"waitingForReply": {"value": 1.0}}})).send().ok();
}

#[test]
fn user_ids_in_filters_match_whatever_their_case() {
    let listed = |id: &str| one().post("/tickets/list", json!({"statuses": ["open", "closed"], "assigneeUserIds": [id]})).send().ids();
    let tickets = one().post("/tickets/list", json!({"statuses": ["open", "closed"]})).send().body();
    let assignee = tickets["data"].as_array().and_then(|all| all.iter().find_map(|ticket| ticket["assigneeUserId"].as_str()));
    let assignee = assignee.expect("the fixture assigns a ticket").to_owned();
    assert_eq!(listed(&assignee.to_uppercase()), listed(&assignee));
    assert!(!listed(&assignee).is_empty());
}

#[test]
fn query_parameters_that_are_not_utf_8_are_refused() {
    one().get("/labels").raw_query("searchTerm=%FF%FE%FF").send().refuses("searchTerm");
    one().get("/tickets").raw_query("ticketId=%FF").send().refuses("ticketId");
}

#[test]
fn head_has_the_content_length_of_get() {
    let length = one().get("/teams").send().header("content-length").map(str::to_owned);
    assert!(length.as_deref().is_some_and(|length| length != "0"));
    assert_eq!(
        one().raw("HEAD", "/healthz").exchange().header("content-length").map(str::to_owned),
        one().raw("GET", "/healthz").exchange().header("content-length").map(str::to_owned)
    );
}

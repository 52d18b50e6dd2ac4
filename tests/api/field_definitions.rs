//! Tests of GET /tickets/fields and GET /contacts/fields: the complete lists in display order, without pagination.

use serde_json::json;

use crate::{fixture::at, harness::one};

#[test]
fn ticket_fields_come_whole_and_in_display_order() {
    let answer = one().get("/tickets/fields").send();
    answer.lists(&[
        "f-text", "f-notes", "f-int", "f-dec", "f-date", "f-when", "f-pick", "f-multi", "f-nums", "f-file", "f-flag", "f-url", "f-full",
    ]);
    assert!(!answer.headers.iter().any(|(name, _)| name.starts_with("x-pagination")), "{}", answer.described());
}

#[test]
fn a_ticket_field_shows_all_its_properties() {
    let fields = one().get("/tickets/fields").send();
    let times = (at("01-01T00:00"), at("01-02T00:00"));
    assert_eq!(
        fields.row("f-text"),
        json!({
            "id": "f-text", "name": "Field f-text", "displayType": "text", "dataType": "string", "sortOrder": 1,
            "isRequired": false, "active": true, "createdAt": times.0, "updatedAt": times.1,
        })
    );
    assert_eq!(
        fields.row("f-full"),
        json!({
            "id": "f-full", "name": "Field f-full", "displayType": "text", "dataType": "string", "sortOrder": 13,
            "isRequired": true, "active": false, "createdAt": times.0, "updatedAt": times.1,
            "description": "Everything there is", "regex": "^[A-Z]+$",
            "showConditions": [
                {"ticketFieldId": "f-int", "operator": "greater_than", "value": 3},
                {"ticketFieldId": "f-pick", "operator": "in", "value": ["red", "blue"]},
            ],
        })
    );
}

#[test]
fn options_keep_their_tree_and_their_types() {
    let fields = one().get("/tickets/fields").send();
    let (pick, nums) = (fields.row("f-pick"), fields.row("f-nums"));
    assert_eq!(
        pick["selectOptions"],
        json!([{"value": "red", "children": [{"value": "dark red"}, {"value": "light red"}]}, {"value": "blue"}])
    );
    assert!(pick.get("maxItems").is_none(), "{pick}");
    assert_eq!(nums["selectOptions"], json!([{"value": 1}, {"value": 2.5}, {"value": 3}]));
    assert_eq!(nums["maxItems"], 3);
}

#[test]
fn accounts_of_a_ticket_field_are_added_on_request() {
    let fields = one().get("/tickets/fields").query("expand", "accounts").send();
    assert_eq!(
        fields.row("f-full")["accounts"],
        json!([
            {"name": "LINE shop", "accountId": "acc-line", "channel": "line"},
            {"name": "Old page", "accountId": "acc-gone", "channel": "facebook"},
        ])
    );
}

#[test]
fn contact_fields_come_whole_and_in_display_order() {
    let answer = one().get("/contacts/fields").send();
    answer.is(json!([
        {
            "id": "c-code", "name": "Code", "displayType": "text", "dataType": "string", "sortOrder": 1, "active": false,
            "regex": "^[0-9]+$",
        },
        {
            "id": "c-size", "name": "Size", "displayType": "multi_select", "dataType": "string", "sortOrder": 2, "active": true,
            "description": "Sizes bought", "selectOptions": [{"value": "S", "children": [{"value": "XS"}]}, {"value": "L"}], "maxItems": 2,
        },
        {"id": "c-born", "name": "Born", "displayType": "date", "dataType": "date", "sortOrder": 3, "active": true},
    ]));
    assert!(!answer.headers.iter().any(|(name, _)| name.starts_with("x-pagination")), "{}", answer.described());
}

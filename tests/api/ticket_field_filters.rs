//! Tests of the filters on field values: `advancedFilters.ticketFields` of POST /tickets/list, on the four tickets `t-f1` to `t-f4` of the
//! account `acc-lab`.

use serde_json::{Value, json};

use crate::{client::Answer, fixture::lab_fields, harness::one, tickets::list};

/// Lists the tickets of the account `acc-lab` that match these filters on field values.
#[track_caller]
fn lab(filters: Value) -> Answer {
    list(json!({"accountIds": ["acc-lab"], "advancedFilters": {"ticketFields": filters}}))
}

/// Asserts that a filter with this field, operator and operand matches exactly these tickets: 1 stands for `t-f1`. The operand is the
/// `value` of the filter, or an object with its bounds `min` and `max`, or null for a filter without an operand.
#[track_caller]
fn finds(field: &str, operator: &str, operand: Value, expected: &[u8]) {
    let mut filter = json!({"ticketFieldId": field, "operator": operator});
    match operand {
        Value::Object(bounds) => bounds.into_iter().for_each(|(name, bound)| filter[name] = bound),
        Value::Null => {}
        value => filter["value"] = value,
    }
    let expected: Vec<_> = expected.iter().map(|n| format!("t-f{n}")).collect();
    let answer = lab(json!([filter]));
    assert_eq!(answer.ids(), expected, "{}", answer.request);
}

#[track_caller]
fn refused(filter: Value) {
    let answer = lab(json!([{"ticketFieldId": "f-text", "operator": "is_not_empty"}, filter]));
    let message = answer.fails(400);
    assert!(message.starts_with("`body.advancedFilters.ticketFields[1]"), "{}", answer.described());
}

#[test]
fn the_fixture_tickets_have_the_expected_field_values() {
    let answer = list(json!({"accountIds": ["acc-lab"]}));
    answer.lists(&["t-f1", "t-f2", "t-f3", "t-f4"]);
    assert_eq!(answer.row("t-f1")["ticketFields"], lab_fields()[0]);
    assert_eq!(answer.row("t-f2")["ticketFields"], lab_fields()[1]);
}

#[test]
fn every_field_can_be_filtered_by_is_empty_and_is_not_empty() {
    for (field, set) in [
        ("f-text", &[1, 2, 3][..]),
        ("f-int", &[1, 2, 3]),
        ("f-dec", &[1, 2, 3]),
        ("f-date", &[1, 2]),
        ("f-when", &[1, 2]),
        ("f-pick", &[1, 2]),
        ("f-multi", &[1, 2, 3]),
        ("f-nums", &[1, 2, 3]),
        ("f-flag", &[1, 2]),
        ("f-url", &[]),
        ("f-file", &[]),
        ("f-notes", &[]),
        ("f-full", &[]),
        ("isConverted", &[1, 2]),
        ("salesRevenue", &[1, 2]),
        ("aiCsat", &[]),
        ("aiSummary", &[]),
        ("resolutionStatus", &[]),
        ("salesRevenueCurrency", &[]),
    ] {
        let unset: Vec<u8> = (1..=4).filter(|n| !set.contains(n)).collect();
        finds(field, "is_not_empty", Value::Null, set);
        finds(field, "is_empty", Value::Null, &unset);
    }
}

#[test]
fn text_equality_is_exact() {
    finds("f-text", "equal", json!("Alpha one"), &[1]);
    finds("f-text", "equal", json!("alpha one"), &[]);
    finds("f-text", "equal", json!("Beta"), &[]);
    finds("f-text", "not_equal", json!("Alpha one"), &[2, 3, 4]);
    finds("f-pick", "equal", json!("dark red"), &[2]);
}

#[test]
fn text_begins_and_contains_without_regard_to_case_and_form() {
    finds("f-text", "starts_with", json!("alpha"), &[1, 2]);
    finds("f-text", "starts_with", json!("beta"), &[3]);
    finds("f-text", "starts_with", json!("ＡＬＰＨＡ ｏ"), &[1]);
    finds("f-text", "starts_with", json!("one"), &[]);
    finds("f-text", "text_contains", json!("ONE"), &[1]);
    finds("f-text", "text_contains", json!("a"), &[1, 2, 3]);
}

#[test]
fn wildcards_in_a_value_stand_for_themselves() {
    finds("f-text", "text_contains", json!("%"), &[2]);
    finds("f-text", "text_contains", json!("_"), &[2]);
    finds("f-text", "starts_with", json!("%"), &[]);
    finds("f-text", "starts_with", json!("a_pha"), &[]);
    finds("f-text", "text_contains", json!("\\"), &[]);
    finds("f-text", "text_contains", json!("' or '1'='1"), &[]);
}

#[test]
fn text_can_be_filtered_by_a_list_of_values() {
    finds("f-text", "is_one_of", json!(["Alpha one", "Ｂｅｔａ", "nothing"]), &[1, 3]);
    finds("f-text", "is_not_one_of", json!(["Alpha one", "Ｂｅｔａ"]), &[2, 4]);
}

#[test]
fn numbers_are_compared_as_numbers() {
    for field in ["f-int", "f-dec"] {
        let plus = if field == "f-int" { 0.0 } else { 0.5 };
        let n = |n: f64| json!(n + plus);
        finds(field, "equal", n(2.0), &[2]);
        finds(field, "not_equal", n(2.0), &[1, 3, 4]);
        finds(field, "greater_than", n(1.0), &[2, 3]);
        finds(field, "less_than", n(2.0), &[1]);
        finds(field, "between", json!({"min": n(1.0), "max": n(2.0)}), &[1, 2]);
        finds(field, "is_one_of", json!([n(1.0), n(3.0), n(9.0)]), &[1, 3]);
        finds(field, "is_not_one_of", json!([n(1.0), n(3.0)]), &[2, 4]);
    }
    finds("f-int", "equal", json!(2), &[2]);
    finds("f-int", "equal", json!(2.0), &[2]);
}

#[test]
fn dates_are_compared_as_instants() {
    finds("f-date", "equal", json!("2025-01-10"), &[1]);
    finds("f-date", "not_equal", json!("2025-01-10"), &[2, 3, 4]);
    finds("f-date", "greater_than", json!("2025-01-10"), &[2]);
    finds("f-date", "less_than", json!("2025-01-11"), &[1]);
    finds("f-date", "between", json!({"min": "2025-01-10", "max": "2025-01-11"}), &[1, 2]);
    finds("f-when", "equal", json!("2025-01-11T17:00:00+07:00"), &[2]);
    finds("f-when", "less_than", json!("2025-01-11T10:00:00Z"), &[1]);
    finds("f-when", "between", json!({"min": "2025-01-10T10:00:00.000Z", "max": "2025-01-11T09:59:59.999Z"}), &[1]);
}

#[test]
fn instants_finer_than_a_millisecond_neither_miss_nor_add_tickets() {
    for finer in ["0001", "000000001", "000000000001"] {
        let behind = |day: u8| json!(format!("2025-01-{day}T10:00:00.{finer}Z"));
        finds("f-when", "less_than", behind(11), &[1, 2]);
        finds("f-when", "greater_than", behind(10), &[2]);
        finds("f-when", "greater_than", json!("2025-01-10T09:59:59.9999Z"), &[1, 2]);
        finds("f-when", "between", json!({"min": behind(10), "max": behind(11)}), &[2]);
        finds("f-when", "between", json!({"min": behind(10), "max": "2025-01-10T10:00:00.0002Z"}), &[]);
        // `equal` compares with the stored form of a value. Times are stored in milliseconds, so `equal` ignores the digits below a
        // millisecond.
        finds("f-when", "equal", behind(10), &[1]);
    }
    let reversed = json!({"min": "2025-01-10T10:00:00.0002Z", "max": "2025-01-10T10:00:00.0001Z"});
    refused(json!({"ticketFieldId": "f-when", "operator": "between", "min": reversed["min"], "max": reversed["max"]}));
    refused(json!({"ticketFieldId": "f-when", "operator": "less_than", "value": "2025-01-10T10:00:60Z"}));
}

#[test]
fn a_number_that_cannot_be_stored_exactly_is_refused() {
    for (operand, member) in [
        (r#""operator":"equal","value":1.50000000000000000001"#, "value"),
        (r#""operator":"is_one_of","value":[1.5,2.50000000000000000001]"#, "value"),
        (r#""operator":"between","min":1.50000000000000000001,"max":2.5"#, "min"),
    ] {
        let body = format!(r#"{{"advancedFilters":{{"ticketFields":[{{"ticketFieldId":"f-dec",{operand}}}]}}}}"#);
        one().post("/tickets/list", Value::Null).bytes(body).send().refuses(&format!("body.advancedFilters.ticketFields[0].{member}"));
    }
}

#[test]
fn booleans_can_be_filtered_by_equal_and_not_equal() {
    finds("f-flag", "equal", json!(true), &[1]);
    finds("f-flag", "equal", json!(false), &[2]);
    finds("f-flag", "not_equal", json!(true), &[2, 3, 4]);
}

#[test]
fn multi_value_fields_can_be_filtered_by_any_all_or_none() {
    finds("f-multi", "contains_any", json!(["a", "d"]), &[1, 3]);
    finds("f-multi", "contains_all", json!(["b", "c"]), &[2, 3]);
    finds("f-multi", "contains_all", json!(["b", "b"]), &[1, 2, 3]);
    finds("f-multi", "does_not_contain_any", json!(["a"]), &[2, 4]);
    finds("f-nums", "contains_any", json!([2.5]), &[1, 2]);
    finds("f-nums", "contains_all", json!([1, 2.5]), &[1]);
    finds("f-nums", "does_not_contain_any", json!([1, 3]), &[2, 4]);
}

#[test]
fn system_keys_are_filtered_like_fields() {
    finds("isConverted", "equal", json!(true), &[1]);
    finds("salesRevenue", "greater_than", json!(50), &[1]);
    finds("salesRevenue", "between", json!({"min": 20, "max": 100.5}), &[1, 2]);
    let human = json!([{"ticketFieldId": "resolutionStatus", "operator": "equal", "value": "human"}]);
    list(json!({"statuses": ["closed"], "advancedFilters": {"ticketFields": human}})).lists(&["t-first"]);
}

#[test]
fn all_field_filters_must_hold() {
    lab(json!([
        {"ticketFieldId": "f-text", "operator": "starts_with", "value": "alpha"},
        {"ticketFieldId": "f-int", "operator": "greater_than", "value": 1},
    ]))
    .lists(&["t-f2"]);
    lab(json!([])).lists(&["t-f1", "t-f2", "t-f3", "t-f4"]);
}

#[test]
fn a_field_that_the_store_does_not_define_is_refused() {
    for field in ["nothing", "f-two", "c-size", "F-TEXT", ""] {
        refused(json!({"ticketFieldId": field, "operator": "is_empty"}));
    }
}

#[test]
fn an_operator_that_does_not_fit_the_field_is_refused() {
    let string = ["equal", "not_equal", "starts_with", "text_contains", "is_one_of", "is_not_one_of"];
    let number = ["equal", "not_equal", "greater_than", "less_than", "between", "is_one_of", "is_not_one_of"];
    let date = ["equal", "not_equal", "greater_than", "less_than", "between"];
    let multi = ["contains_any", "contains_all", "does_not_contain_any"];
    let all: [&[&str]; 4] = [&string, &number, &date, &multi];
    for (field, value, fitting) in [
        ("f-text", json!("a"), &string[..]),
        ("f-url", json!("a"), &string),
        ("f-pick", json!("a"), &string),
        ("aiSummary", json!("a"), &string),
        ("f-int", json!(1), &number),
        ("salesRevenue", json!(1), &number),
        ("f-date", json!("2025-01-01"), &date),
        ("f-when", json!("2025-01-01T00:00:00Z"), &date),
        ("f-flag", json!(true), &["equal", "not_equal"]),
        ("f-multi", json!("a"), &multi),
        ("f-nums", json!(1), &multi),
    ] {
        let mut unfit: Vec<&str> = all.concat().into_iter().filter(|operator| !fitting.contains(operator)).collect();
        unfit.sort_unstable();
        unfit.dedup();
        for operator in unfit {
            // The operand has the form that the operator needs, so that the request is refused only because the operator does not fit the
            // field.
            let mut filter = json!({"ticketFieldId": field, "operator": operator});
            match operator {
                "between" => (filter["min"], filter["max"]) = (value.clone(), value.clone()),
                "is_one_of" | "is_not_one_of" | "contains_any" | "contains_all" | "does_not_contain_any" => {
                    filter["value"] = json!([value])
                }
                _ => filter["value"] = value.clone(),
            }
            refused(filter);
        }
    }
}

#[test]
fn a_value_of_the_wrong_type_is_refused() {
    for (field, operator, value) in [
        ("f-text", "equal", json!(1)),
        ("f-text", "starts_with", json!(["a"])),
        ("f-text", "is_one_of", json!("a")),
        ("f-text", "is_one_of", json!(["a", 1])),
        ("f-int", "equal", json!("1")),
        ("f-int", "equal", json!(1.5)),
        ("f-dec", "greater_than", json!(null)),
        ("f-date", "equal", json!("2025-02-30")),
        ("f-date", "equal", json!("2025-01-10T00:00:00Z")),
        ("f-when", "equal", json!("2025-01-10")),
        ("f-flag", "equal", json!("true")),
        ("f-multi", "contains_any", json!("a")),
        ("f-multi", "contains_any", json!([1])),
        ("f-nums", "contains_any", json!(["1"])),
    ] {
        refused(json!({"ticketFieldId": field, "operator": operator, "value": value}));
    }
}

#[test]
fn an_operator_without_its_operand_is_refused() {
    for filter in [
        json!({"ticketFieldId": "f-text", "operator": "equal"}),
        json!({"ticketFieldId": "f-int", "operator": "between"}),
        json!({"ticketFieldId": "f-int", "operator": "between", "min": 1}),
        json!({"ticketFieldId": "f-int", "operator": "between", "max": 1}),
        json!({"ticketFieldId": "f-int", "operator": "between", "min": 2, "max": 1}),
        json!({"ticketFieldId": "f-text", "operator": "is_nothing"}),
        json!({"ticketFieldId": "f-text"}),
        json!({"operator": "is_empty"}),
        json!("f-text"),
    ] {
        refused(filter);
    }
}

#[test]
fn ten_field_filters_are_accepted_and_eleven_refused() {
    let some = |n: usize| Value::Array(vec![json!({"ticketFieldId": "f-int", "operator": "greater_than", "value": 1}); n]);
    lab(some(10)).lists(&["t-f2", "t-f3"]);
    lab(some(11)).refuses("body.advancedFilters.ticketFields");
}

//! Tests of the values that a field accepts, by the kind of the field. The same rules apply to ticket fields, to the fields in a request
//! that closes a ticket, and to contact fields.

use serde_json::{Value, json};

use super::{WriteFixture, values_of};

/// Returns accepted values: a field, a value that is sent, and the value that is then stored. The field is named without the prefix of its
/// id, `f-` for ticket fields and `c-` for contact fields.
fn accepted() -> Vec<(&'static str, Value, Value)> {
    let same = |field, value: Value| (field, value.clone(), value);
    vec![
        same("text", json!("สวัสดี 𝕏 \"quoted\" \\ ' ; drop table tickets; --")),
        same("notes", json!("one\ntwo\tthree")),
        same("code", json!("found 42 inside")),
        same("code", json!("42")),
        same("whole", json!("ABC")),
        same("int", json!(3)),
        same("int", json!(-17)),
        same("int", json!(9_007_199_254_740_991_i64)),
        same("int", json!(-9_007_199_254_740_991_i64)),
        same("date", json!("2024-02-29")),
        same("when", json!("2025-01-31T09:05:00.123Z")),
        ("when", json!("2025-01-31T09:05:00Z"), json!("2025-01-31T09:05:00.000Z")),
        ("when", json!("2025-01-31T23:30:00.5-02:30"), json!("2025-02-01T02:00:00.500Z")),
        ("when", json!("2025-01-01T00:00:00+07:00"), json!("2024-12-31T17:00:00.000Z")),
        same("pick", json!("red")),
        same("pick", json!("dark")),
        same("pick", json!("wine")),
        same("pick", json!("7")),
        same("num", json!(1)),
        same("num", json!(2.5)),
        same("multi", json!(["c"])),
        same("multi", json!(["b", "aa"])),
        same("texts", json!(["x1", "x2", "x3"])),
        same("one", json!("single")),
        same("file", json!("https://cdn.example/a.pdf")),
        same("flag", json!(false)),
        same("flag", json!(true)),
    ]
}

/// Returns pairs of a field and a value that the field refuses.
fn refused() -> Vec<(&'static str, Value)> {
    let all: Vec<(&str, Vec<Value>)> = vec![
        ("text", vec![json!(5), json!(true), json!(["a"]), json!({}), json!({"a": 1}), json!([])]),
        ("code", vec![json!("4"), json!("no digits"), json!(42)]),
        ("whole", vec![json!("ABCd"), json!("abc"), json!("")]),
        (
            "int",
            vec![
                json!(3.5),
                json!("3"),
                json!(true),
                json!([3]),
                json!(9_007_199_254_740_992_i64),
                json!(-9_007_199_254_740_992_i64),
                json!(1e300),
                json!(u64::MAX),
                json!(""),
            ],
        ),
        (
            "date",
            vec![
                json!("2025-02-30"),
                json!("2025-2-3"),
                json!("2025-01-31T00:00:00Z"),
                json!("31.01.2025"),
                json!("20250131"),
                json!(""),
                json!(20_250_131),
                json!(" 2025-01-31"),
            ],
        ),
        (
            "when",
            vec![
                json!("2025-01-31T09:05:00"),
                json!("2025-01-31"),
                json!("2025-02-30T00:00:00Z"),
                json!("yesterday"),
                json!(1_738_314_300_000_i64),
                json!("2025-01-31T25:00:00Z"),
            ],
        ),
        ("pick", vec![json!("blue"), json!("Red"), json!(7), json!(["red"]), json!(""), json!("red ")]),
        ("num", vec![json!("1"), json!(2), json!(4), json!([1]), json!(true)]),
        (
            "multi",
            vec![
                json!("a"),
                json!(["a", "b", "c"]),
                json!(["a", "a"]),
                json!(["z"]),
                json!(["a", null]),
                json!([["a"]]),
                json!([1]),
                json!({"0": "a"}),
            ],
        ),
        ("texts", vec![json!("x1"), json!(["x1", "x2", "x3", "x4"]), json!(["x1", "x1"]), json!(["x1", "y"]), json!([1])]),
        ("one", vec![json!(["single"]), json!([])]),
        ("file", vec![json!(1), json!(["https://cdn.example/a.pdf"])]),
        ("flag", vec![json!("true"), json!(0), json!(1), json!("yes"), json!([true])]),
    ];
    all.into_iter().flat_map(|(field, values)| values.into_iter().map(move |value| (field, value))).collect()
}

#[test]
fn a_ticket_field_stores_values_that_fit() {
    let shop = WriteFixture::open();
    let more = [
        ("dec", json!(1.25), json!(1.25)),
        ("dec", json!(-0.001), json!(-0.001)),
        ("dec", json!(3), json!(3)),
        ("dec", json!(-1.661_971_371_337_755_5e-209), json!(-1.661_971_371_337_755_5e-209)),
        ("url", json!("https://example.com/?a=b"), json!("https://example.com/?a=b")),
        ("url", json!("HTTP://example.com"), json!("HTTP://example.com")),
    ];
    for (field, sent, stored) in accepted().into_iter().chain(more) {
        let ticket = shop.set("t-free", &format!("f-{field}"), sent.clone()).ok();
        assert_eq!(ticket["ticketFields"][format!("f-{field}")], stored, "{field}: {sent}");
        assert_eq!(shop.ticket("t-free"), ticket, "{field}: {sent}");
    }
}

#[test]
fn an_integer_sent_with_a_fraction_of_zero_is_that_integer() {
    let shop = WriteFixture::open();
    for (field, sent, stored) in [("int", json!(4.0), 4), ("int", json!(-0.0), 0), ("num", json!(3.0), 3)] {
        let ticket = shop.set("t-free", &format!("f-{field}"), sent).ok();
        assert_eq!(ticket["ticketFields"][format!("f-{field}")].as_f64(), Some(f64::from(stored)));
        shop.assert_unchanged(|| shop.set("t-free", &format!("f-{field}"), json!(stored)).ok());
    }
}

/// An integer is shown as `4`, since a parser that expects an integer does not accept `4.0`.
#[test]
fn an_integer_is_shown_without_a_fraction() {
    let shop = WriteFixture::open();
    assert_eq!(shop.set("t-free", "f-int", json!(4.0)).ok()["ticketFields"], json!({"f-int": 4}));
    shop.set_contact("con-new", "c-int", json!(4.0)).ok();
    assert_eq!(shop.contact("con-new")["customFields"], json!({"c-int": 4}));
}

#[test]
fn a_ticket_field_refuses_values_that_do_not_fit() {
    let shop = WriteFixture::open();
    let more = [
        ("dec", json!("1.5")),
        ("dec", json!([1.5])),
        ("dec", json!(true)),
        ("dec", json!(9_007_199_254_740_992_i64)),
        ("dec", json!(1e16)),
        ("url", json!(5)),
        ("url", json!("javascript:alert(1)")),
        ("url", json!("ftp://example.com/a")),
        ("url", json!("data:text/html,x")),
        ("url", json!("example.com")),
        ("url", json!("")),
        ("hidden", json!(5)),
    ];
    shop.assert_unchanged(|| {
        shop.close(json!({"ticketId": "t-free", "ticketFields": {"f-url": "javascript:alert(1)"}})).refuses("body.ticketFields.f-url");
        for (field, value) in refused().into_iter().chain(more) {
            shop.set("t-set", &format!("f-{field}"), value).refuses("body.newValue");
        }
    });
}

#[test]
fn a_close_validates_field_values_like_a_ticket_field_update() {
    let shop = WriteFixture::open();
    for (field, sent, stored) in accepted() {
        let id = format!("f-{field}");
        let ticket = shop.close(json!({"ticketId": "t-shut", "ticketFields": {&id: sent.clone()}})).ok();
        assert_eq!(ticket["ticketFields"][&id], stored, "{field}: {sent}");
    }
    shop.assert_unchanged(|| {
        for (field, value) in refused() {
            let id = format!("f-{field}");
            // The request also has a valid value for another field. Because of the invalid value, the valid one is not written, and the
            // ticket is not closed.
            let body = json!({"ticketId": "t-free", "isConverted": true, "ticketFields": {"f-notes": "good", &id: value}});
            shop.close(body).refuses(&format!("body.ticketFields.{id}"));
        }
    });
}

#[test]
fn a_contact_field_stores_values_that_fit() {
    let shop = WriteFixture::open();
    for (field, sent, stored) in accepted() {
        let id = format!("c-{field}");
        shop.set_contact("con-new", &id, sent.clone()).is(super::acknowledged());
        assert_eq!(values_of(&shop.contact("con-new"), "customFields")[&id], stored, "{field}: {sent}");
    }
}

#[test]
fn a_contact_field_refuses_values_that_do_not_fit() {
    let shop = WriteFixture::open();
    shop.assert_unchanged(|| {
        for (field, value) in refused() {
            shop.set_contact("con-mia", &format!("c-{field}"), value).refuses("body.value");
        }
    });
}

#[test]
fn a_field_without_a_limit_has_a_default_limit() {
    let shop = WriteFixture::open();
    let values = |count: u32| Value::from_iter(0..count);
    shop.set("t-free", "f-many", values(100)).ok();
    shop.set("t-free", "f-many", values(101)).refuses("body.newValue");
    shop.close(json!({"ticketId": "t-free", "ticketFields": {"f-many": values(101)}})).refuses("body.ticketFields.f-many");
    shop.set_contact("con-new", "c-many", values(10)).ok();
    shop.set_contact("con-new", "c-many", values(11)).refuses("body.value");
}

#[test]
fn a_text_too_long_for_an_index_entry_is_stored_filtered_and_imported() {
    // A long text of pseudo-random letters, which PostgreSQL cannot compress to fit into an index entry.
    let digit = |state: &mut u64| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some(char::from(b'a' + (*state >> 33) as u8 % 26))
    };
    let long: String = std::iter::repeat(()).scan(1, |state, ()| digit(state)).take(20_000).collect();
    let shop = WriteFixture::open();
    shop.set("t-free", "f-notes", json!(long)).ok();
    shop.close(json!({"ticketId": "t-shut", "ticketFields": {"f-notes": format!("{long}2")}})).ok();
    for (operator, value, found) in [
        ("equal", long.clone(), &["t-free"][..]),
        ("starts_with", long.to_uppercase(), &["t-free", "t-shut"]),
        ("text_contains", format!("{}2", &long[9_000..]), &["t-shut"]),
    ] {
        let filter = json!({"ticketFieldId": "f-notes", "operator": operator, "value": value});
        let body = json!({"statuses": ["open", "closed"], "advancedFilters": {"ticketFields": [filter]}});
        let mut ids = shop.post("/tickets/list", body).send().ids();
        ids.sort();
        assert_eq!(ids, found, "{operator}");
    }
    let lines = shop.server.database.run(&["export", "--store", "desk"]);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap_or_default()).collect();
    assert_eq!(WriteFixture::with(&[("copy", lines)]).ticket("t-free")["ticketFields"]["f-notes"], long);
}

#[test]
fn a_number_that_cannot_be_stored_as_it_was_sent_is_refused() {
    let shop = WriteFixture::open();
    shop.assert_unchanged(|| {
        for number in ["0.10000000000000000001", "1234567890123.45678", "-1e-400", "9007199254740990.5", "3.00000000000000000001"] {
            let body = format!(r#"{{"ticketId":"t-free","ticketFieldId":"f-dec","newValue":{number}}}"#);
            shop.patch("/tickets/field-values", Value::Null).bytes(body).send().refuses("body.newValue");
            let body = format!(r#"{{"ticketId":"t-free","ticketFields":{{"f-text":"x","f-dec":{number}}}}}"#);
            shop.post("/tickets/close", Value::Null).bytes(body).send().refuses("body.ticketFields.f-dec");
            let stamp = super::stamp(&shop.contact("con-mia"), "updatedAt");
            let body = format!(r#"{{"contactId":"con-mia","contactFieldId":"c-num","value":{number},"updatedAt":"{stamp}"}}"#);
            shop.patch("/contacts/field-values", Value::Null).bytes(body).send().refuses("body.value");
        }
    });
}

#[test]
fn a_number_is_stored_as_it_was_sent() {
    let shop = WriteFixture::open();
    let set = |number: &str| {
        let body = format!("{{\"ticketId\":\"t-free\",\"ticketFieldId\":\"f-dec\",\"newValue\":{number}}}");
        shop.patch("/tickets/field-values", Value::Null).bytes(body).send()
    };
    for number in ["9007199254740991", "9007199254740990", "-1.6619713713377555e-209", "0.8474337369372327", "763774.6189766944", "0.1"] {
        set(number).ok();
        // A write to another field reads all field values of the ticket and stores them again. The number in `f-dec` must keep its digits.
        shop.set("t-free", "f-int", json!(number.len())).ok();
        let answer = shop.api.get("/tickets").query("ticketId", "t-free").send();
        assert!(answer.text.contains(&format!("\"f-dec\":{number}")), "{number}: {}", answer.described());
    }
}

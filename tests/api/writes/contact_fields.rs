//! Tests of PATCH /contacts/field-values: changed values, and the timestamp for optimistic concurrency. The module `field_values` tests
//! which values are accepted.

use serde_json::{Value, json};

use super::{WriteFixture, acknowledged, stamp, values_of, without};
use crate::fixture::at;

const STAMPS: [&str; 2] = ["updatedAt", "customFieldsUpdatedAt"];

#[test]
fn setting_a_custom_field_leaves_the_rest_of_the_contact_unchanged() {
    let shop = WriteFixture::open();
    let before = shop.contact("con-mia");
    shop.set_contact_at("con-mia", "c-text", json!("after"), &at("01-20T00:00")).is(acknowledged());
    let after = shop.contact("con-mia");
    let mut expected = without(before.clone(), &STAMPS);
    expected["customFields"] = json!({"c-text": "after", "c-int": 3});
    assert_eq!(without(after.clone(), &STAMPS), expected);
    for member in STAMPS {
        assert!(stamp(&after, member) > stamp(&before, member), "{member}");
    }
}

#[test]
fn the_first_custom_field_write_requires_the_timestamp_of_the_contact() {
    let shop = WriteFixture::open();
    let before = shop.contact("con-new");
    assert!(before.get("customFieldsUpdatedAt").is_none(), "{before}");
    shop.assert_unchanged(|| {
        for wrong in [at("01-01T00:00"), at("01-31T23:59:59.999"), at("02-01T00:00:00.001")] {
            shop.set_contact_at("con-new", "c-text", json!("x"), &wrong).fails(409);
        }
    });
    shop.set_contact_at("con-new", "c-text", json!("x"), &at("02-01T00:00")).is(acknowledged());
    let after = shop.contact("con-new");
    let next = stamp(&after, "customFieldsUpdatedAt");
    // Now that the custom fields have a timestamp, a write must send this timestamp instead of the contact's.
    shop.set_contact_at("con-new", "c-text", json!("y"), &at("02-01T00:00")).fails(409);
    shop.set_contact_at("con-new", "c-text", json!("y"), &next).is(acknowledged());
}

#[test]
fn another_timestamp_than_the_stored_one_is_a_conflict() {
    let shop = WriteFixture::open();
    shop.assert_unchanged(|| {
        // Wrong timestamps: a stale one, two that are later than the stored one, and that of the contact. The timestamp of the contact
        // counts only while its custom fields have no timestamp.
        for wrong in [at("01-19T23:59:59.999"), at("01-20T00:00:00.001"), "2099-01-01T00:00:00Z".into(), at("02-01T00:00")] {
            for value in [json!("after"), json!("before"), Value::Null] {
                shop.set_contact_at("con-mia", "c-text", value, &wrong).fails(409);
            }
        }
    });
    shop.set_contact_at("con-mia", "c-text", json!("after"), "2025-01-20T07:00:00+07:00").is(acknowledged());
}

#[test]
fn timestamps_increase_strictly() {
    let shop = WriteFixture::open();
    let mut last = at("01-20T00:00");
    for n in 0..12 {
        shop.set_contact_at("con-mia", "c-int", json!(100 + n), &last).is(acknowledged());
        let next = stamp(&shop.contact("con-mia"), "customFieldsUpdatedAt");
        assert!(next > last, "{next} after {last}");
        last = next;
    }
    shop.set_contact_at("con-ahead", "c-text", json!("x"), "2099-01-01T00:00:00Z").is(acknowledged());
    assert_eq!(shop.contact("con-ahead")["customFieldsUpdatedAt"], "2099-01-01T00:00:00.001Z");
}

#[test]
fn setting_the_stored_value_changes_nothing() {
    let shop = WriteFixture::open();
    shop.assert_unchanged(|| {
        for (field, value) in
            [("c-text", json!("before")), ("c-int", json!(3)), ("c-int", json!(3.0)), ("c-notes", Value::Null), ("c-multi", json!([]))]
        {
            shop.set_contact("con-mia", field, value).is(acknowledged());
        }
        shop.set_contact("con-new", "c-text", Value::Null).is(acknowledged());
    });
}

#[test]
fn null_or_an_empty_list_unsets_a_custom_field() {
    let shop = WriteFixture::open();
    shop.set_contact("con-mia", "c-multi", json!(["a", "b"])).ok();
    shop.set_contact("con-mia", "c-text", Value::Null).is(acknowledged());
    assert_eq!(shop.contact("con-mia")["customFields"], json!({"c-int": 3, "c-multi": ["a", "b"]}));
    shop.set_contact("con-mia", "c-multi", json!([])).is(acknowledged());
    shop.set_contact("con-mia", "c-int", Value::Null).is(acknowledged());
    assert_eq!(values_of(&shop.contact("con-mia"), "customFields"), json!({}));
}

#[test]
fn missing_records_and_inactive_fields_are_reported() {
    let shop = WriteFixture::open();
    shop.assert_unchanged(|| {
        let now = at("01-20T00:00");
        shop.set_contact_at("nobody", "c-text", json!("x"), &now).fails(404);
        shop.set_contact_at("con-mia", "nothing", json!("x"), &now).fails(404);
        shop.set_contact_at("con-mia", "f-text", json!("x"), &now).fails(404);
        shop.set_contact_at("con-mia", "c-old", json!("x"), &now).refuses("body.contactFieldId");
        shop.set_contact_at("con-mia", "c-old", Value::Null, &now).refuses("body.contactFieldId");
        // The server checks first whether the contact exists, then the value, then the timestamp.
        shop.set_contact_at("nobody", "c-int", json!("x"), &now).fails(404);
        shop.set_contact_at("con-mia", "c-int", json!("x"), &at("01-01T00:00")).refuses("body.value");
    });
}

#[test]
fn a_body_of_the_wrong_shape_is_refused() {
    let shop = WriteFixture::open();
    let good = json!({"contactId": "con-mia", "contactFieldId": "c-text", "value": "x", "updatedAt": at("01-20T00:00")});
    shop.assert_unchanged(|| {
        for member in ["contactId", "contactFieldId", "value", "updatedAt"] {
            shop.patch("/contacts/field-values", without(good.clone(), &[member])).send().refuses(&format!("body.{member}"));
        }
        for (member, bad) in [
            ("contactId", json!(null)),
            ("contactId", json!(5)),
            ("contactFieldId", json!(null)),
            ("contactFieldId", json!(["c-text"])),
            ("updatedAt", json!(null)),
            ("updatedAt", json!("now")),
            ("updatedAt", json!("2025-01-20")),
            ("updatedAt", json!(1_737_331_200_000_i64)),
            ("newValue", json!("x")),
            ("customFieldsUpdatedAt", json!(at("01-20T00:00"))),
        ] {
            let mut body = good.clone();
            body[member] = bad;
            shop.patch("/contacts/field-values", body).send().refuses(&format!("body.{member}"));
        }
    });
    shop.patch("/contacts/field-values", good).send().is(acknowledged());
}

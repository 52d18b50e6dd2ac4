//! Tests of GET /contacts and POST /contacts/list: the properties of a contact, search, and the filters by time of update.

use serde_json::{Value, json};

use crate::{client::Answer, fixture::at, harness::one};

/// The ids of all contacts of store `one`, most recently updated first.
const ALL: [&str; 8] = ["con-tie-c", "con-tie-b", "con-tie-a", "con-busy", "con-min", "con-wide", "con-thai", "con-mia"];

fn list(body: Value) -> Answer {
    one().post("/contacts/list", body).send()
}

/// Asserts that a search finds exactly these contacts, in any order: revision A of the API lists the most recently updated contact first,
/// revision B the most relevant one.
#[track_caller]
fn finds(search: &str, expected: &[&str]) {
    let answer = list(json!({"search": search}));
    let (mut found, mut expected) = (answer.ids(), expected.to_vec());
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected, "{}", answer.request);
}

fn mia() -> Value {
    json!({
        "id": "con-mia", "fullName": "Mia Nguyễn", "firstName": "Mia", "lastName": "Nguyễn", "email": "Mia.N@Example.com",
        "phone": "+66812345678", "secondaryPhones": ["+66900000001", "+66900000002"], "secondaryEmails": ["mia@work.example"],
        "addresses": ["1 Main Road, Bangkok"], "note": "Likes tea", "customFields": {"c-size": ["S", "L"], "c-code": "42"},
        "customFieldsUpdatedAt": at("04-30T00:00"), "createdAt": at("01-01T00:00"), "updatedAt": at("05-01T00:00"),
    })
}

#[test]
fn a_contact_shows_all_its_properties() {
    one().get("/contacts").query("contactId", "con-mia").send().is(mia());
    assert_eq!(list(json!({})).row("con-mia"), mia());
}

#[test]
fn a_contact_leaves_out_absent_properties() {
    let mut contact = one().get("/contacts").query("contactId", "con-min").send().ok();
    // The JSON of a contact without custom field values may have an empty `customFields` or none.
    if contact["customFields"] == json!({}) {
        contact.as_object_mut().map(|contact| contact.remove("customFields"));
    }
    assert_eq!(
        contact,
        json!({
            "id": "con-min", "fullName": "Minimal", "firstName": "Minimal", "createdAt": at("01-01T00:00"), "updatedAt": at("05-04T00:00"),
        })
    );
}

#[test]
fn a_contact_id_is_required_and_an_unknown_one_is_not_found() {
    one().get("/contacts").send().refuses("contactId");
    one().get("/contacts").query("contactId", "nobody").send().fails(404);
}

#[test]
fn contacts_are_listed_most_recently_updated_first() {
    list(json!({})).lists(&ALL);
    one().call("POST", "/contacts/list").send().lists(&ALL);
    list(json!({"search": null, "updatedAfter": null, "updatedBefore": null})).lists(&ALL);
}

#[test]
fn a_blank_search_lists_all_contacts() {
    for blank in ["", "   ", "\t\n", "\u{3000}"] {
        list(json!({"search": blank})).lists(&ALL);
    }
}

#[test]
fn a_search_finds_words_of_name_and_email_and_digits_of_phone() {
    finds("sakura_100%@example", &["con-wide"]);
    finds("tie", &["con-tie-a", "con-tie-b", "con-tie-c"]);
    finds("ied", &[]);
    finds("Tied Tw", &["con-tie-b"]);
    finds("8123456", &["con-mia"]);
    finds("+668", &["con-mia", "con-thai"]);
    finds("example.com", &["con-mia", "con-wide"]);
    finds("nobody at all", &[]);
}

#[test]
fn every_term_of_a_search_must_occur_in_any_field() {
    finds("two tied", &["con-tie-b"]);
    finds("example.com +6681 nguyễn", &["con-mia"]);
    finds("tied sakura", &[]);
}

#[test]
fn a_search_ignores_case_and_unicode_form() {
    finds("MIA.N@EXAMPLE.COM", &["con-mia"]);
    finds("NGUYỄN", &["con-mia"]);
    finds("nguye\u{302}\u{303}n", &["con-mia"]);
    finds("sakura", &["con-wide"]);
    finds("ＭＩＡ", &["con-mia"]);
    finds("สมชาย ใจ", &["con-thai"]);
    finds("STRASSE", &["con-busy"]);
}

#[test]
fn wildcards_in_a_search_stand_for_themselves() {
    finds("100%", &["con-wide"]);
    finds("sakura_1", &["con-wide"]);
    finds("M_a", &[]);
    finds("M%a", &[]);
    finds("\\", &[]);
}

#[test]
fn a_search_is_at_most_one_hundred_characters() {
    list(json!({"search": "ไ".repeat(100)})).lists(&[]);
    list(json!({"search": "ไ".repeat(101)})).refuses("body.search");
}

#[test]
fn updates_are_bounded_below_inclusively_and_above_exclusively() {
    list(json!({"updatedAfter": at("05-05T00:00")})).lists(&ALL[..4]);
    list(json!({"updatedAfter": at("05-05T00:00:00.001")})).lists(&ALL[..3]);
    list(json!({"updatedBefore": at("05-02T00:00")})).lists(&["con-mia"]);
    list(json!({"updatedAfter": at("05-02T00:00"), "updatedBefore": at("05-04T00:00")})).lists(&["con-wide", "con-thai"]);
    list(json!({"updatedAfter": "2025-05-06T07:00:00+07:00"})).lists(&ALL[..3]);
    list(json!({"updatedAfter": at("05-06T00:00"), "updatedBefore": at("05-01T00:00")})).lists(&[]);
    list(json!({"search": "tied", "updatedBefore": at("05-06T00:00")})).lists(&[]);
}

#[test]
fn bounds_finer_than_a_millisecond_are_exact() {
    // Each bound is less than a millisecond after the timestamp of a contact.
    for finer in ["0001", "000001", "000000001", "000000000001"] {
        let behind = |day: &str| json!(at(&format!("{day}T00:00:00.{finer}")));
        list(json!({"updatedAfter": behind("05-05")})).lists(&ALL[..3]);
        list(json!({"updatedBefore": behind("05-02")})).lists(&["con-thai", "con-mia"]);
        list(json!({"updatedAfter": behind("05-02"), "updatedBefore": behind("05-03")})).lists(&["con-wide"]);
        list(json!({"search": "tied", "updatedAfter": behind("05-06")})).lists(&[]);
        assert_eq!(list(json!({"search": "tied", "updatedBefore": behind("05-06")})).ids().len(), 3);
    }
    let before = |text: &str| list(json!({"updatedBefore": text}));
    before("2025-05-01T23:59:60Z").lists(&["con-mia"]);
    before("2025-05-02T06:59:60.5+07:00").lists(&["con-thai", "con-mia"]);
    before("2025-05-02T10:00:60Z").refuses("body.updatedBefore");
    list(json!({"updatedAfter": "2025-05-01T23:59:60+07:00"})).refuses("body.updatedAfter");
}

#[test]
fn a_contact_filter_of_the_wrong_type_or_name_is_refused() {
    for (body, field) in [
        (json!({"search": 5}), "body.search"),
        (json!({"search": ["mia"]}), "body.search"),
        (json!({"updatedAfter": "yesterday"}), "body.updatedAfter"),
        (json!({"updatedAfter": "2025-05-01"}), "body.updatedAfter"),
        (json!({"updatedAfter": "2025-05-01T00:00:00"}), "body.updatedAfter"),
        (json!({"updatedBefore": 1_746_057_600_000_i64}), "body.updatedBefore"),
        (json!({"query": "mia"}), "body.query"),
        (json!({"Search": "mia"}), "body.Search"),
    ] {
        list(body).refuses(field);
    }
}

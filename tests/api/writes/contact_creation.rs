//! Tests of POST /contacts: the created contact, refused bodies, and unique e-mail addresses and phone numbers.

use serde_json::{Value, json};

use super::{WriteFixture, stamp, without};

/// Creates a contact from this body, and asserts that it can then be read. Returns the contact.
#[track_caller]
fn made(shop: &WriteFixture, body: Value) -> Value {
    let contact = shop.post("/contacts", body).send().ok();
    let id = contact["id"].as_str().unwrap_or_else(|| panic!("no id in {contact}"));
    assert_eq!(shop.contact(id), contact);
    contact
}

fn named(name: &str) -> Value {
    json!({"firstName": name})
}

#[test]
fn a_new_contact_is_returned_with_all_its_properties_and_is_searchable() {
    let shop = WriteFixture::open();
    let body = json!({"firstName": "Ada", "lastName": "Lovelace", "email": "Ada@Example.com", "phone": "+441234567890"});
    let contact = made(&shop, body);
    let now = stamp(&contact, "createdAt");
    assert_eq!(
        without(contact.clone(), &["id", "customFields"]),
        json!({
            "fullName": "Ada Lovelace", "firstName": "Ada", "lastName": "Lovelace", "email": "Ada@Example.com",
            "phone": "+441234567890", "createdAt": now, "updatedAt": now,
        })
    );
    let id = contact["id"].as_str().and_then(|id| id.parse::<uuid::Uuid>().ok());
    assert_eq!(id.map(|id| id.get_version_num()), Some(7), "{contact}");
    // A search finds the contact right after it was created.
    assert_eq!(
        shop.post("/contacts/list", json!({"search": "lovelace +44123"})).send().ids(),
        [contact["id"].as_str().unwrap_or_default()]
    );
    assert_eq!(shop.kinds(), Vec::<String>::new());
}

#[test]
fn a_contact_can_be_created_with_only_a_first_name() {
    let shop = WriteFixture::open();
    let contact = made(&shop, named("สมชาย"));
    assert_eq!((&contact["fullName"], &contact["firstName"]), (&json!("สมชาย"), &json!("สมชาย")));
    for absent in ["lastName", "email", "phone", "secondaryEmails", "secondaryPhones", "addresses", "note", "customFieldsUpdatedAt"] {
        assert!(contact.get(absent).is_none(), "{absent} in {contact}");
    }
    // Only e-mail addresses and phone numbers must be unique, and this contact has neither. So the same request creates another contact.
    assert_ne!(made(&shop, named("สมชาย"))["id"], contact["id"]);
}

#[test]
fn the_first_custom_field_write_accepts_the_timestamp_of_a_new_contact() {
    let shop = WriteFixture::open();
    let contact = made(&shop, named("Ada"));
    let id = contact["id"].as_str().unwrap_or_default();
    shop.set_contact_at(id, "c-text", json!("x"), &stamp(&contact, "updatedAt")).ok();
    assert_eq!(shop.contact(id)["customFields"], json!({"c-text": "x"}));
}

#[test]
fn lengths_are_counted_in_characters() {
    let shop = WriteFixture::open();
    for letter in ["ไ", "𝕏", "a"] {
        let contact = made(&shop, json!({"firstName": letter.repeat(50), "lastName": letter.repeat(50)}));
        assert_eq!(contact["fullName"].as_str().map(|name| name.chars().count()), Some(101));
    }
    let address = |letters: usize| format!("{}@{}.com", "a".repeat(60), "b".repeat(letters));
    made(&shop, json!({"firstName": "A", "email": address(35)}));
    made(&shop, json!({"firstName": "A", "phone": "+12345678901234"}));
    shop.assert_unchanged(|| {
        for letter in ["ไ", "a"] {
            shop.post("/contacts", named(&letter.repeat(51))).send().refuses("body.firstName");
            shop.post("/contacts", json!({"firstName": "A", "lastName": letter.repeat(51)})).send().refuses("body.lastName");
        }
        shop.post("/contacts", json!({"firstName": "A", "email": address(36)})).send().refuses("body.email");
        shop.post("/contacts", json!({"firstName": "A", "phone": "+123456789012345"})).send().refuses("body.phone");
    });
}

#[test]
fn an_invalid_contact_is_refused() {
    let shop = WriteFixture::open();
    shop.assert_unchanged(|| {
        for blank in ["", " ", "\t\n", "\u{3000}", "\u{a0} "] {
            shop.post("/contacts", named(blank)).send().refuses("body.firstName");
        }
        for (body, field) in [
            (json!({}), "body.firstName"),
            (json!({"firstName": null}), "body.firstName"),
            (json!({"firstName": 5}), "body.firstName"),
            (json!({"lastName": "Only"}), "body.firstName"),
            (json!({"firstName": "A", "lastName": null}), "body.lastName"),
            (json!({"firstName": "A", "email": null}), "body.email"),
            (json!({"firstName": "A", "phone": null}), "body.phone"),
            (json!({"firstName": "A", "phone": 66_812_345_678_i64}), "body.phone"),
            (json!({"firstName": "A", "fullName": "A"}), "body.fullName"),
            (json!({"firstName": "A", "id": "mine"}), "body.id"),
            (json!({"firstName": "A", "customFields": {}}), "body.customFields"),
        ] {
            shop.post("/contacts", body).send().refuses(field);
        }
        let displayed = ["Mia <mia@example.com>", "<mia@example.com>", "\"mia\"@example.com", "a@[127.0.0.1]"];
        for email in displayed.into_iter().chain([
            "",
            "nope",
            "a@",
            "@b.co",
            "a b@c.de",
            "a@b@c.de",
            "a@b.co\n",
            "a@b.co\r\nBcc: c@d.ef",
            " a@b.co",
            "Mali <a@b.co>",
        ]) {
            shop.post("/contacts", json!({"firstName": "A", "email": email})).send().refuses("body.email");
        }
        for phone in [
            "",
            "+",
            "0812345678",
            "66812345678",
            "+66 812345678",
            "+66-812-345",
            "+66812345678x",
            "+๖๖๘๑๒๓๔๕",
            "tel:+6681",
            "++6681234",
            "+0812345678",
            "+9991234567",
        ] {
            shop.post("/contacts", json!({"firstName": "A", "phone": phone})).send().refuses("body.phone");
        }
    });
}

#[test]
fn a_primary_email_or_phone_belongs_to_one_contact() {
    let shop = WriteFixture::open();
    shop.assert_unchanged(|| {
        for email in ["Mia@Example.com", "mia@example.com", "MIA@EXAMPLE.COM"] {
            shop.post("/contacts", json!({"firstName": "Mia", "email": email})).send().fails(409);
        }
        shop.post("/contacts", json!({"firstName": "Mia", "phone": "+66812345678"})).send().fails(409);
        shop.post("/contacts", json!({"firstName": "Mia", "email": "new@example.com", "phone": "+66812345678"})).send().fails(409);
        // The form of the body is checked before the server looks for another contact with the same e-mail address.
        shop.post("/contacts", json!({"firstName": "", "email": "mia@example.com"})).send().refuses("body.firstName");
    });
    // Only the primary e-mail address and phone number of a contact are unique. A new contact may have the secondary e-mail address and
    // phone number of another contact.
    made(&shop, json!({"firstName": "Mia", "email": "second@example.com", "phone": "+66899999999"}));
    shop.post("/contacts", json!({"firstName": "Mia", "email": "SECOND@example.com"})).send().fails(409);
}

//! Tests of POST /messages/template and POST /messages/template/phone: the sent text, the conversation that a template goes to, and refused
//! requests.

use serde_json::{Value, json};

use super::{WriteFixture, acknowledged, concurrent_writes::race, outbound, sends::untouched};
use crate::{
    REV_A,
    client::Answer,
    fixture::{MIA, STATUSES, channels},
};

const NEW: &str = "+66844444444";

fn reply(shop: &WriteFixture, conversation: &str, template: &str, variables: Value) -> Answer {
    send(shop, "/messages/template", json!({"conversationId": conversation, "templateId": template}), variables)
}

fn phone(shop: &WriteFixture, account: &str, phone: &str, template: &str, variables: Value) -> Answer {
    send(shop, "/messages/template/phone", json!({"accountId": account, "phoneNumber": phone, "templateId": template}), variables)
}

/// Sends a request to one of the operations that send templates. If `variables` is null, the request has no `variables`.
fn send(shop: &WriteFixture, path: &str, mut body: Value, variables: Value) -> Answer {
    if !variables.is_null() {
        body["variables"] = variables;
    }
    shop.post(path, body).send()
}

#[test]
fn a_template_of_the_wrong_shape_is_refused() {
    if REV_A {
        return;
    }
    let shop = WriteFixture::channels();
    untouched(&shop, || {
        for to_phone in [false, true] {
            let send = |template: &str, variables| match to_phone {
                true => phone(&shop, "acc-wa", NEW, template, variables),
                false => reply(&shop, "conv-wa", template, variables),
            };
            for (variables, field) in [
                (json!("a"), "body.variables"),
                (json!({"1": "a"}), "body.variables"),
                (json!(["a", 5]), "body.variables[1]"),
                (json!(["a", null]), "body.variables[1]"),
                (json!(["a", "\u{0}"]), "body.variables[1]"),
                (json!([]), "body.variables"),
                (json!(["a"]), "body.variables"),
                (json!(["a", "b", "c"]), "body.variables"),
                (Value::Null, "body.variables"),
            ] {
                send("tpl-pair", variables).refuses(field);
            }
            send("tpl-APPROVED", json!(["a"])).refuses("body.variables");
            for variables in [Value::Null, json!([]), json!(["a"])] {
                for template in ["tpl-named", "tpl-header", "tpl-image", "tpl-link", "tpl-coupon"] {
                    send(template, variables.clone()).refuses("body.templateId");
                }
            }
            for status in STATUSES.into_iter().filter(|status| !["APPROVED", "FLAGGED", "REINSTATED"].contains(status)) {
                send(&format!("tpl-{status}"), Value::Null).refuses("body.templateId");
            }
            for unknown in ["nothing", "", "tpl-other"] {
                send(unknown, Value::Null).fails(404);
            }
        }
        for (path, body, field) in [
            ("/messages/template", json!({"templateId": "tpl-APPROVED"}), "body.conversationId"),
            ("/messages/template", json!({"conversationId": "conv-wa"}), "body.templateId"),
            ("/messages/template", json!({"conversationId": "conv-wa", "templateId": null}), "body.templateId"),
            ("/messages/template", json!({"conversationId": "conv-wa", "templateId": "tpl-APPROVED", "variables": null}), "body.variables"),
            ("/messages/template", json!({"conversationId": "conv-wa", "templateId": "tpl-APPROVED", "text": "x"}), "body.text"),
            ("/messages/template/phone", json!({"phoneNumber": NEW, "templateId": "tpl-APPROVED"}), "body.accountId"),
            ("/messages/template/phone", json!({"accountId": "acc-wa", "templateId": "tpl-APPROVED"}), "body.phoneNumber"),
            ("/messages/template/phone", json!({"accountId": "acc-wa", "phoneNumber": NEW}), "body.templateId"),
            (
                "/messages/template/phone",
                json!({"accountId": "acc-wa", "phoneNumber": 66844444444_i64, "templateId": "x"}),
                "body.phoneNumber",
            ),
            ("/messages/template/phone", json!({"accountId": "acc-wa", "phoneNumber": NEW, "templateId": "x", "phone": NEW}), "body.phone"),
        ] {
            shop.post(path, body).send().refuses(field);
        }
        for bad in ["", "66844444444", "+66 844444444", "+123456789012345", "+1234567890123456", "+", "+abc", "+٦٦٨٤٤٤٤٤٤٤٤"] {
            phone(&shop, "acc-wa", bad, "tpl-APPROVED", Value::Null).refuses("body.phoneNumber");
            phone(&shop, "nobody", bad, "nothing", Value::Null).refuses("body.phoneNumber");
        }
        // An unknown conversation or account causes a 404, whatever the template.
        reply(&shop, "nobody", "tpl-named", Value::Null).misses("body.conversationId");
        phone(&shop, "nobody", NEW, "tpl-APPROVED", Value::Null).misses("body.accountId");
        // The channel of the account is checked before the template.
        for template in ["tpl-APPROVED", "nothing"] {
            reply(&shop, "conv-web", template, Value::Null).refuses("body.conversationId");
            for account in ["acc-web", "acc-mail"] {
                phone(&shop, account, NEW, template, Value::Null).refuses("body.accountId");
            }
        }
        reply(&shop, "conv-wa", "nothing", Value::Null).misses("body.templateId");
        phone(&shop, "acc-wa", NEW, "nothing", Value::Null).misses("body.templateId");
    });
}

#[test]
fn a_template_is_sent_inside_and_outside_the_messaging_window() {
    if REV_A {
        return;
    }
    let shop = WriteFixture::channels();
    for id in ["conv-wa", "conv-wa-late", "conv-wa-never"] {
        reply(&shop, id, "tpl-pair", json!(["น้อง {{2}}", " \n"])).is(acknowledged());
        let shown = shop.newest(id);
        let text = "สวัสดี น้อง {{2}}, order  \n; bye น้อง {{2}}";
        assert_eq!(shown, outbound(&shown, id, "acc-wa", Value::Null, Some(text), None));
    }
    for status in ["APPROVED", "FLAGGED", "REINSTATED"] {
        reply(&shop, "conv-wa", &format!("tpl-{status}"), json!([])).is(acknowledged());
    }
    assert_eq!(shop.conversation("conv-wa")["allMsgCnt"], 6);
    // After the template, a text message is still refused: WhatsApp accepts texts only for some time after a message of the contact.
    shop.text("conv-wa-late", "x").refuses("body.conversationId");
}

/// Only the newer revision of the API can send templates, and only the older one shows `payload`. So the test reads the payload from an
/// export.
#[test]
fn the_payload_of_a_template_has_its_variables() {
    if REV_A {
        return;
    }
    let shop = WriteFixture::channels();
    reply(&shop, "conv-wa", "tpl-pair", json!(["a", "b"])).is(acknowledged());
    let id = shop.newest("conv-wa")["id"].clone();
    let exported = super::parsed(&shop.server.database.run(&["export", "--store", "shop"]));
    let record = exported.iter().map(|line| &line["record"]).find(|record| record["id"] == id).unwrap_or_else(|| panic!("no {id}"));
    let template = json!({"id": "tpl-pair", "name": "name_tpl-pair", "language": "th", "variables": ["a", "b"]});
    assert_eq!(record["payload"], json!({"type": "template", "text": "สวัสดี a, order b; bye a", "template": template}));
}

#[test]
fn a_phone_has_one_thread_on_an_account() {
    if REV_A {
        return;
    }
    let shop = WriteFixture::channels();
    // The contact with this phone number already has a conversation on this account. The template is sent in this conversation.
    phone(&shop, "acc-wa", MIA, "tpl-APPROVED", Value::Null).is(acknowledged());
    assert_eq!(shop.conversation("conv-wa")["allMsgCnt"], 3);
    // On the account `acc-wb`, the contact has an imported conversation whose reference is another phone number. Even so, the template is
    // sent in that conversation.
    let before = shop.conversations_of("con-mia").ids().len();
    for count in [3, 4] {
        phone(&shop, "acc-wb", MIA, "tpl-other", json!(["x"])).is(acknowledged());
        assert_eq!(shop.conversation("conv-wb")["allMsgCnt"], count);
    }
    assert_eq!(shop.conversations_of("con-mia").ids().len(), before);
    // No contact has this phone number, so a contact and a conversation are created.
    phone(&shop, "acc-wa", NEW, "tpl-APPROVED", Value::Null).is(acknowledged());
    let contact = shop.only_contact(NEW);
    assert_eq!((&contact["firstName"], &contact["fullName"], &contact["phone"]), (&json!(NEW), &json!(NEW), &json!(NEW)));
    let talk = shop.conversations_of(contact["id"].as_str().unwrap_or_default()).ok()[0].clone();
    assert_eq!((&talk["referenceId"], &talk["displayName"], &talk["channel"]), (&json!(NEW), &json!(NEW), &json!("whatsapp")));
    assert_eq!((talk.get("lastRecipientMsgDate"), &talk["unreadMsgCnt"]), (None, &json!(0)));
    shop.text(talk["id"].as_str().unwrap_or_default(), "x").refuses("body.conversationId");
    let open = shop.api.get("/tickets").query("ticketId", "t-wa").send().ok();
    assert_eq!(open["isOpen"], true);
    let all = json!({"conversationId": talk["id"], "statuses": ["open", "closed"]});
    assert_eq!(shop.post("/tickets/list", all).send().ids(), [""; 0], "no ticket opens");
}

#[test]
fn a_template_to_a_phone_continues_a_thread_received_without_the_plus_sign() {
    if REV_A {
        return;
    }
    let shop = WriteFixture::channels();
    let folder = tempfile::tempdir().expect("a directory for temporary files");
    let path = folder.path().join("message");
    let digits = NEW.trim_start_matches('+');
    let message = json!({"accountId": "acc-wa", "referenceId": digits, "externalId": "x", "sender": {"id": digits}, "text": "x"});
    std::fs::write(&path, format!("{message}\n")).expect("the file is written");
    shop.server.database.run(&["message", "receive", "--store", "shop", &path.to_string_lossy()]);
    phone(&shop, "acc-wa", NEW, "tpl-APPROVED", Value::Null).is(acknowledged());
    let contact = shop.only_contact(NEW);
    let talks = shop.conversations_of(contact["id"].as_str().unwrap_or_default());
    assert_eq!((talks.ids().len(), &talks.ok()[0]["allMsgCnt"]), (1, &json!(2)));
}

#[test]
fn a_template_goes_to_the_requested_phone_despite_another_conversation_reference() {
    if REV_A {
        return;
    }
    let mut lines = channels();
    for line in &mut lines {
        if line["record"]["id"] == "conv-wb" {
            line["record"]["referenceId"] = json!("thread-of-another-system");
            line["asStored"] = json!(true);
        }
    }
    let shop = WriteFixture::with_settings(&[("shop", lines)], &[]);
    shop.server.database.run(&["bridge", "set", "--store", "shop", "--account", "acc-wb", "--url", "https://bridge.invalid/"]);
    phone(&shop, "acc-wb", MIA, "tpl-other", json!(["x"])).is(acknowledged());
    shop.text("conv-wb", "a reply").is(acknowledged());
    assert_eq!(shop.conversation("conv-wb")["allMsgCnt"], 4);
    let references: Vec<_> = shop.parcels().iter().map(|parcel| parcel["reference_id"].clone()).collect();
    assert_eq!(references, [MIA, MIA]);
    assert_eq!(shop.conversation("conv-wb")["referenceId"], "thread-of-another-system");
}

#[test]
fn concurrent_templates_to_a_new_phone_share_one_thread() {
    if REV_A {
        return;
    }
    let shop = WriteFixture::channels();
    race(20, |n| phone(&shop, "acc-wa", NEW, "tpl-pair", json!([format!("{n}"), "x"]))).iter().for_each(|answer| answer.is(acknowledged()));
    let contact = shop.only_contact(NEW)["id"].clone();
    let talks = shop.conversations_of(contact.as_str().unwrap_or_default());
    assert_eq!(talks.ids().len(), 1);
    assert_eq!(talks.ok()[0]["allMsgCnt"], 20);
    // Repeats the race on another account, with a different idempotency key in each request. The concurrent creation of the same
    // conversation must not cause an error for a caller.
    let answers = race(20, |n| {
        let body = json!({"accountId": "acc-wb", "phoneNumber": "+66866666666", "templateId": "tpl-other", "variables": [format!("{n}")]});
        shop.post("/messages/template/phone", body).header("idempotency-key", &format!("k{n}")).send()
    });
    answers.iter().for_each(|answer| answer.is(acknowledged()));
    let contact = shop.only_contact("+66866666666")["id"].clone();
    assert_eq!(shop.conversations_of(contact.as_str().unwrap_or_default()).ok()[0]["allMsgCnt"], 20);
    // Concurrent e-mails to the same new address: each creates its own conversation, but together they create only one contact.
    let mail = |n: usize| json!({"accountId": "acc-mail", "to": [{"email": if n.is_multiple_of(2) { "New@example.com" } else { "new@EXAMPLE.com" }}], "text": "x"});
    race(20, |n| shop.post("/messages/email/new", mail(n)).send()).iter().for_each(|answer| answer.is(acknowledged()));
    let contact = shop.only_contact("new@example.com")["id"].clone();
    assert_eq!(shop.conversations_of(contact.as_str().unwrap_or_default()).ids().len(), 20);
}

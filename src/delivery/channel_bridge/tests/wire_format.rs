//! Tests of the wire format of a request to a bridge (an operator's HTTP endpoint that delivers messages), and of the classification of
//! responses.

use super::*;

#[tokio::test]
async fn a_message_is_posted_signed_and_gets_its_ids_from_the_response() {
    let reply = answers("201 Created", r#"{"externalId":"x-1","referenceId":"thread 7","more":[]}"#);
    let (bench, local, secret) = Bench::bridged(reply).await;
    // The simulator is the fallback connector for accounts without a bridge. The account of the test has a bridge, so the simulator is not
    // used.
    let mut worker = bench.worker_with(Connectors::every(Arc::new(Simulator)), Targets::Any);
    bench.text("สวัสดี \u{1} simulate:refuse").await;
    worker.drain().await.unwrap();
    let seen = local.last();
    let id = seen.id().to_owned();
    assert_eq!((seen.line.as_str(), local.count()), ("POST /hooks?a=b HTTP/1.1", 1));
    assert_eq!(seen.headers["content-type"], "application/json");
    assert!(seen.headers["user-agent"].starts_with("counterpart/"), "{seen:?}");
    assert_eq!((seen.seconds(), seen.signatures()), (START / 1000, vec![seen.signed_by(&secret).as_str()]));
    let expected = json!({
        "type": "message.send", "attempt": 1, "storeId": bench.fixture.store, "messageId": id, "conversationId": "c0", "accountId": "a1",
        "channel": "line", "referenceId": "c0", "text": "สวัสดี \u{1} simulate:refuse",
    });
    assert_eq!(body(&seen), expected);
    assert_eq!((bench.undelivered().await, bench.due().await, bench.sent().await), (vec![], None, 1));
    // The channel may report a sent message as an inbound one (echo). The echo is recognised by `x-1`, the channel's id of the message. A
    // new message of the thread is assigned to the conversation by `thread 7`, the reference id that the bridge returned.
    let echo = bench.receive("x-1", "whatever").await;
    assert_eq!((echo.duplicate, echo.message_id.as_str()), (true, id.as_str()));
    let next = bench.receive("x-2", "thread 7").await;
    assert_eq!((next.duplicate, next.conversation_id.as_str()), (false, "c0"));
}

#[tokio::test]
async fn emails_and_templates_have_payloads_of_their_own() {
    let bench = Bench::new().await;
    let local = Local::new(takes("x")).await;
    bench.fixture.account("m1", "gmail").await;
    bench.fixture.account("w1", "whatsapp").await;
    bench.fixture.template("tpl", "w1", "greeting").await;
    for account in ["m1", "w1"] {
        bench.bridge(account, &local.url).await.unwrap();
    }
    let mailbox = |email: &str, name: Option<&str>| Mailbox { email: email.to_owned(), name: name.map(str::to_owned) };
    let bare = EmailContent {
        to: vec![mailbox("eva@example.com", None)],
        cc: vec![],
        bcc: vec![],
        subject: None,
        text: Some("plain".to_owned()),
        html: None,
    };
    bench.service.send(&bench.by(), Send::EmailNew { account_id: "m1".into(), email: bare.clone() }).await.unwrap();
    let mut worker = bench.worker();
    worker.drain().await.unwrap();
    let first = body(&local.last());
    let (message_id, mail_id) = (first["messageId"].as_str().unwrap(), format!("<{}@counterpart.invalid>", local.last().id()));
    let expected = json!({
        "type": "message.send", "attempt": 1, "storeId": bench.fixture.store, "messageId": message_id,
        "conversationId": first["conversationId"], "accountId": "m1", "channel": "gmail", "referenceId": mail_id,
        "email": {"messageId": mail_id, "to": [{"email": "eva@example.com"}], "text": "plain"},
    });
    assert_eq!(first, expected);

    let full = EmailContent {
        to: vec![mailbox("eva@example.com", Some("Eva"))],
        cc: vec![mailbox("c@example.com", None)],
        bcc: vec![mailbox("b@example.com", None)],
        subject: Some("Hi".to_owned()),
        html: Some("<p>".to_owned()),
        ..bare
    };
    let conversation_id = first["conversationId"].as_str().unwrap().into();
    bench.service.send(&bench.by(), Send::EmailReply { conversation_id, email: full }).await.unwrap();
    worker.drain().await.unwrap();
    let reply = body(&local.last());
    let expected = json!({
        "messageId": format!("<{}@counterpart.invalid>", local.last().id()), "to": [{"email": "eva@example.com", "name": "Eva"}],
        "cc": [{"email": "c@example.com"}], "bcc": [{"email": "b@example.com"}], "subject": "Hi", "text": "plain", "html": "<p>",
        "inReplyTo": mail_id, "references": [mail_id],
    });
    assert_eq!((&reply["email"], reply.get("text")), (&expected, None));

    let filling = FilledTemplate { template_id: "tpl".into(), variables: vec![] };
    let send = Send::TemplateToPhone { account_id: "w1".into(), phone_number: "+66812345678".to_owned(), filling };
    bench.service.send(&bench.by(), send).await.unwrap();
    worker.drain().await.unwrap();
    let template = body(&local.last());
    let expected = json!({"id": "tpl", "name": "greeting", "language": "en", "variables": [], "text": ""});
    assert_eq!((&template["template"], &template["referenceId"]), (&expected, &json!("+66812345678")));
    assert_eq!((local.count(), bench.undelivered().await), (3, vec![]));
}

#[test]
fn the_kind_human_agent_is_sent_to_the_bridge() {
    let outbox_entry = OutboxEntry {
        store_id: "s".into(),
        message_id: "m".into(),
        conversation_id: "c".into(),
        account_id: "a".into(),
        channel: Channel("facebook".to_owned()),
        reference_id: "r".to_owned(),
        kind: Some("human_agent".to_owned()),
        content: Content::Text(String::new()),
        actor: Actor::System,
        ticket_id: Some("t".into()),
    };
    let expected = json!({
        "type": "message.send", "attempt": 3, "storeId": "s", "messageId": "m", "conversationId": "c", "accountId": "a",
        "channel": "facebook", "referenceId": "r", "kind": "human_agent", "text": "",
    });
    assert_eq!(serde_json::to_value(MessageOrder::of(&outbox_entry, 3)).unwrap(), expected);
}

fn whole(status: u16, pause: Option<i64>, body: &[u8]) -> EndpointResponse {
    EndpointResponse { status, pause, body: ResponseBody::Whole(body.to_vec()) }
}

#[test]
fn a_bridge_response_is_classified_by_its_status_and_members() {
    let taken = |external: &str, reference: Option<&str>| {
        Ok(Accepted { external_id: Some(external.to_owned()), reference_id: reference.map(str::to_owned) })
    };
    let (limit, over) = ("ข".repeat(512), "ข".repeat(513));
    for (status, body, expected) in [
        (200, r#"{"externalId":"x"}"#.to_owned(), taken("x", None)),
        (299, r#"{"externalId":"x","referenceId":"r","error":"none"}"#.to_owned(), taken("x", Some("r"))),
        (200, json!({ "externalId": limit }).to_string(), taken(&limit, None)),
    ] {
        assert_eq!(classify_bridge_response(&whole(status, Some(5), body.as_bytes())), expected, "{status} {body}");
    }
    let long = json!({ "error": format!("{}z", "y".repeat(200)) }).to_string();
    for (status, body, again, reason) in [
        (200, "", true, "no JSON object"),
        (204, "", true, "answered 204, but the answer is not understood"),
        (200, "ok", true, "no JSON object"),
        (200, "[1]", true, "no JSON object"),
        (200, "\"x\"", true, "no JSON object"),
        (200, "{}", true, "`externalId` is missing"),
        (200, r#"{"externalId":null}"#, true, "`externalId` must be a string"),
        (200, r#"{"externalId":7}"#, true, "`externalId` must be a string"),
        (200, r#"{"externalId":" "}"#, true, "`externalId` must be a string"),
        (200, r#"{"externalId":"a\u0000b"}"#, true, "`externalId` must be a string"),
        (200, r#"{"externalId":"a\nb"}"#, true, "`externalId` must be a string"),
        (200, &json!({ "externalId": over }).to_string(), true, "`externalId` must be a string of 1 to 512"),
        (200, r#"{"externalId":"x","referenceId":""}"#, true, "`referenceId` must be a string"),
        (200, r#"{"externalId":"x","referenceId":7}"#, true, "`referenceId` must be a string"),
        (101, r#"{"externalId":"x"}"#, true, "answered 101"),
        (302, r#"{"externalId":"x"}"#, true, "answered 302"),
        (408, "", true, "answered 408"),
        (425, "", true, "answered 425"),
        (429, "", true, "answered 429"),
        (500, r#"{"error":"later"}"#, true, "answered 500: later"),
        (599, "<html>", true, "answered 599"),
        (999, "", true, "answered 999"),
        (400, r#"{"error":"the number\r\nis blocked"}"#, false, "answered 400: the number  is blocked"),
        (401, "no JSON", false, "answered 401"),
        (404, r#"{"error":{"code":7}}"#, false, "answered 404"),
        (410, r#"{"externalId":"x"}"#, false, "answered 410"),
        (422, &long, false, &"y".repeat(200)),
        (499, "", false, "answered 499"),
    ] {
        let refused = classify_bridge_response(&whole(status, Some(7), body.as_bytes())).unwrap_err();
        let after = FailureClass::Transient { after: Some(Duration::from_millis(7)) };
        assert_eq!(refused.class, if again { after } else { FailureClass::Permanent }, "{status} {body}");
        assert!(refused.reason.contains(reason) && !refused.reason.ends_with('z'), "{status} {body}: {}", refused.reason);
    }
    assert_eq!(classify_bridge_response(&whole(400, None, b"{}")).unwrap_err().reason, "the bridge answered 400");
    let long = |status| EndpointResponse { status, pause: None, body: ResponseBody::TooLong(Vec::new()) };
    assert!(classify_bridge_response(&long(200)).unwrap_err().reason.contains("longer than 65536 bytes"));
    assert_eq!(classify_bridge_response(&long(403)).unwrap_err().reason, "the bridge answered 403");
}

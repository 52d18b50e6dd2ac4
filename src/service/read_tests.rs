//! Tests of reads: missing records, refused parameters, and expansion (adding the related records that a request asks for).

use std::sync::{Arc, atomic::Ordering};

use serde_json::{Value, json};

use super::{Error, Service, test_service::Silent};
use crate::{
    domain::{
        clock::ClocksAndIds,
        custom_fields::Comparable,
        fake_clock_and_test_rules::RULES,
        messages::{CommentExpand, MessageExpand},
        paging::PageRequest,
        revision_rules::Rules,
        stores_and_accounts::TemplateFilter,
        ticket_filters::{FieldFilter, FieldOperator, TicketFilter},
        tickets::TicketExpand,
        users_teams_labels::Member,
    },
    store::{
        Db,
        fixture::{Fixture, counter, first},
    },
};

fn service(db: Db, user_name_fallback: bool) -> Service {
    Service::new(
        db,
        ClocksAndIds::real(),
        Rules { user_name_fallback, contacts_by_relevance: !user_name_fallback, ..RULES },
        Arc::new(Silent),
    )
}

fn shape<T>(result: super::Result<T>) -> String {
    match result {
        Ok(_) => "ok".to_owned(),
        Err(error @ Error::NotFound { .. }) => format!("missing: {error}"),
        Err(Error::Invalid { field, .. }) => format!("invalid: {field}"),
        Err(other) => format!("other: {other}"),
    }
}

const EVERYTHING: TicketExpand = TicketExpand { account: true, conversation: true, assignee: true, handled_by: true };

#[tokio::test]
async fn tickets_expand_existing_records_in_three_statements() {
    let (count, on_statement) = counter();
    let fixture = Fixture::open(Some(on_statement)).await;
    fixture.user("s1", Some("u1"), Some("Ann"), 0).await;
    fixture.user("s2", Some("u2"), None, 0).await;
    for i in 1..=5 {
        fixture
            .ticket(&i.to_string(), |row| {
                row.assignee_user_id = Some("u1".into());
                row.handled_by = Some(if i == 1 { "u2" } else { "u1" }.into());
                if i == 2 {
                    row.account_id = "gone".into();
                }
            })
            .await;
    }
    let plain = service(fixture.db.clone(), false);
    let store = &fixture.store;

    count.store(0, Ordering::Relaxed);
    plain.ticket(store, &"1".into(), TicketExpand::default()).await.unwrap();
    assert_eq!(count.swap(0, Ordering::Relaxed), 1);

    let page = PageRequest { size: 20, after: None, count: false };
    let views = plain.tickets(store, TicketFilter::default(), page, EVERYTHING).await.unwrap().rows;
    assert_eq!(count.load(Ordering::Relaxed), 4);
    assert_eq!(views.len(), 5);
    for view in &views {
        assert_eq!(view.account.is_some(), view.ticket.id.as_str() != "2");
        assert_eq!(view.conversation.as_ref().unwrap().name, format!("Conversation c{}", view.ticket.id));
        assert_eq!(view.assignee.as_ref().unwrap().name, "Ann");
        assert_eq!(view.handled_by.is_some(), view.ticket.id.as_str() != "1");
    }
    let named = service(fixture.db.clone(), true).ticket(store, &"1".into(), EVERYTHING).await.unwrap();
    assert_eq!(named.handled_by.unwrap().name, "Invited user");
    let one = TicketExpand { handled_by: true, ..TicketExpand::default() };
    assert_eq!(plain.ticket(store, &"1".into(), one).await.unwrap().assignee, None);
    assert_eq!(shape(plain.ticket(store, &"9".into(), EVERYTHING).await), "missing: `ticketId`: no ticket with id `9` in this store");
    assert_eq!(
        shape(plain.ticket(&"another".into(), &"1".into(), EVERYTHING).await),
        "missing: `ticketId`: no ticket with id `1` in this store"
    );
}

#[tokio::test]
async fn field_filters_are_checked_against_the_definitions() {
    let fixture = Fixture::new().await;
    fixture.field("when", "datetime", "date").await;
    fixture.field("tags", "multi_select", "string").await;
    fixture.ticket("1", |_| {}).await;
    fixture.values("1", "when", [Comparable::Number(1000.0)]).await;
    fixture.values("1", "isConverted", [Comparable::Text("true".into())]).await;
    let service = service(fixture.db.clone(), false);
    let run = async |filters: &[(&str, FieldOperator, Value)]| {
        let fields = filters
            .iter()
            .map(|(id, operator, value)| FieldFilter {
                field_id: (*id).into(),
                operator: *operator,
                value: (!value.is_null()).then(|| value.clone()),
                min: None,
                max: None,
            })
            .collect();
        let filter = TicketFilter { fields, ..Default::default() };
        match service.tickets(&fixture.store, filter, first(20), TicketExpand::default()).await {
            Ok(page) => page.rows.len().to_string(),
            Err(error) => shape::<()>(Err(error)),
        }
    };
    use FieldOperator::*;
    let second = "invalid: body.advancedFilters.ticketFields[1]";
    let good = ("when", Equal, json!("1970-01-01T01:00:01+01:00"));
    assert_eq!(run(&[good.clone(), ("isConverted", Equal, json!(true))]).await, "1");
    assert_eq!(run(&[good.clone(), ("isConverted", NotEqual, json!(true))]).await, "0");
    assert_eq!(run(&[good.clone(), ("tags", IsEmpty, json!(null))]).await, "1");
    assert_eq!(run(&[good.clone(), ("tags", DoesNotContainAny, json!(["a"]))]).await, "1");
    assert_eq!(run(&[good.clone(), ("tags", Equal, json!("a"))]).await, second);
    assert_eq!(run(&[good.clone(), ("when", LessThan, json!("1970-01-01"))]).await, second);
    assert_eq!(run(&[good.clone(), ("gone", IsEmpty, json!(null))]).await, second);
}

#[tokio::test]
async fn ids_that_do_not_belong_together_are_not_found() {
    let fixture = Fixture::new().await;
    fixture.contact("k2", 0).await;
    fixture.conversation("other", |_| {}).await;
    fixture.ticket("1", |_| {}).await;
    let (service, store) = (service(fixture.db.clone(), false), &fixture.store);
    for (conversation, contact, expected) in [
        (Some("c1"), None, "ok"),
        (Some("c1"), Some("k1"), "ok"),
        (Some("c1"), Some("k2"), "missing: `conversationId`: no conversation of that contact with id `c1` in this store"),
        (Some("gone"), Some("k1"), "missing: `conversationId`: no conversation with id `gone` in this store"),
        (None, Some("k2"), "ok"),
        (None, Some("gone"), "missing: `contactId`: no contact with id `gone` in this store"),
        (None, None, "invalid: conversationId"),
    ] {
        let (conversation, contact) = (conversation.map(Into::into), contact.map(Into::into));
        let result = service.conversations(store, conversation.as_ref(), contact.as_ref(), first(1), true).await;
        assert_eq!(shape(result), expected);
    }
    for (conversation, ticket, expected) in [
        (Some("c1"), None, "ok"),
        (Some("c1"), Some("1"), "ok"),
        (None, Some("1"), "ok"),
        (Some("other"), Some("1"), "missing: `ticketId`: no ticket of that conversation with id `1` in this store"),
        (Some("gone"), None, "missing: `conversationId`: no conversation with id `gone` in this store"),
        (None, Some("gone"), "missing: `ticketId`: no ticket with id `gone` in this store"),
        (None, None, "invalid: conversationId"),
    ] {
        let (conversation, ticket) = (conversation.map(Into::into), ticket.map(Into::into));
        let result = service.messages(store, conversation.as_ref(), ticket.as_ref(), first(1), MessageExpand::default()).await;
        assert_eq!(shape(result), expected);
    }
    assert_eq!(
        shape(service.comments(store, &"gone".into(), first(1), CommentExpand::default()).await),
        "missing: `conversationId`: no conversation with id `gone` in this store"
    );
    let page = service.conversations(store, None, Some(&"k1".into()), first(2), true).await.unwrap();
    assert_eq!((page.rows.len(), page.total, page.next.is_some()), (2, Some(3), true));
    assert_eq!(page.rows[0].account.as_ref().unwrap().name, "Account a1");
}

#[tokio::test]
async fn messages_and_comments_expand_their_author_and_conversation() {
    let fixture = Fixture::new().await;
    fixture.user("s1", Some("u1"), Some("Ann"), 0).await;
    for (id, inbound, author) in [("in", true, "u1"), ("out", false, "u1"), ("bot", false, "gone")] {
        fixture
            .message(id, "c0", 1, |row| {
                row.inbound = inbound;
                row.author_user_id = Some(author.into());
                row.images = Some(r#"["https://example.com/a.png"]"#.into());
            })
            .await;
    }
    fixture.comment("n1", "c0", 1, "u1").await;
    fixture.comment("n2", "c0", 2, "gone").await;
    let (service, store, conversation) = (service(fixture.db.clone(), false), &fixture.store, "c0".into());
    let expand = MessageExpand { sent_by: true, conversation: true, account: true };
    for view in service.messages(store, Some(&conversation), None, first(9), expand).await.unwrap().rows {
        assert_eq!(view.sent_by.is_some(), view.message.id.as_str() == "out");
        assert_eq!(view.conversation.unwrap().name, "Conversation c0");
        assert_eq!(view.account.unwrap().id, "a1");
        assert_eq!(view.message.images.unwrap().len(), 1);
    }
    let expand = CommentExpand { created_by: true, conversation: false, account: true };
    let comments = service.comments(store, &conversation, first(9), expand).await.unwrap().rows;
    let seen: Vec<_> = comments.iter().map(|view| (view.comment.id.as_str(), view.created_by.is_some())).collect();
    assert_eq!(seen, [("n2", false), ("n1", true)]);
    assert!(comments.iter().all(|view| view.comment.account_id.as_str() == "a1" && view.account.is_some() && view.conversation.is_none()));
}

#[tokio::test]
async fn users_teams_labels_accounts_templates_and_fields_are_listed() {
    let fixture = Fixture::new().await;
    fixture.account("w1", "whatsapp").await;
    fixture.role("r1", "Agent").await;
    fixture.user("s1", Some("u1"), Some("Ann"), 2).await;
    fixture.user("s2", None, None, 1).await;
    fixture.team("t1", &["u1", "gone"]).await;
    fixture.team("t2", &[]).await;
    fixture.named_label("l1", "Straße 50%", 1).await;
    fixture.named_label("l2", "other", 2).await;
    fixture.field("f", "text", "string").await;
    for (id, text) in [("p2", "a"), ("p1", "a"), ("p3", "B 1_0")] {
        fixture.template(id, "w1", text).await;
    }
    let (service, store) = (service(fixture.db.clone(), false), &fixture.store);

    let users = service.users(store, None, true).await.unwrap();
    assert_eq!(users.iter().map(|view| view.user.id.as_str()).collect::<Vec<_>>(), ["s2", "s1"]);
    assert_eq!(users[1].role.as_ref().unwrap().name, "Agent");
    assert_eq!(service.users(store, Some(&"u1".into()), false).await.unwrap()[0].role, None);
    assert!(service.users(store, Some(&"gone".into()), false).await.unwrap().is_empty());

    let teams = service.teams(store, None, first(9), true).await.unwrap().rows;
    assert!(matches!(&teams[0].members[..], [Member::User(user), Member::Id(id)] if user.name == "Ann" && id.as_str() == "gone"));
    assert!(teams[1].members.is_empty());
    let teams = service.teams(store, Some(&"gone".into()), first(9), false).await.unwrap();
    assert_eq!((teams.total, teams.rows[0].members.len()), (Some(1), 2));
    assert!(teams.rows[0].members.iter().all(|member| matches!(member, Member::Id(_))));

    for (search, expected) in [(None, "l2 l1"), (Some("STRASSE"), "l1"), (Some("0%"), "l1"), (Some("%"), "l1"), (Some("x"), "")] {
        let labels = service.labels(store, search, first(9)).await.unwrap().rows;
        assert_eq!(labels.iter().map(|label| label.id.as_str()).collect::<Vec<_>>().join(" "), expected);
    }
    let accounts = service.accounts(store, Some(&crate::domain::stores_and_accounts::Channel("whatsapp".into())), first(9)).await.unwrap();
    assert_eq!((accounts.rows[0].id.as_str(), accounts.total), ("w1", Some(1)));

    for (search, expected) in [(None, "p3 p1 p2"), (Some("b 1_"), "p3"), (Some("1%0"), "")] {
        let filter = TemplateFilter { search: search.map(Into::into), ..Default::default() };
        let templates = service.templates(store, &"w1".into(), filter).await.unwrap();
        assert_eq!(templates.iter().map(|template| template.id.as_str()).collect::<Vec<_>>().join(" "), expected);
    }
    assert_eq!(shape(service.templates(store, &"a1".into(), TemplateFilter::default()).await), "invalid: accountId");
    assert_eq!(
        shape(service.templates(store, &"gone".into(), TemplateFilter::default()).await),
        "missing: `accountId`: no account with id `gone` in this store"
    );

    let fields = service.ticket_fields(store, true).await.unwrap();
    assert_eq!(fields[0].accounts.as_ref().unwrap().len(), 1);
    assert_eq!(service.ticket_fields(store, false).await.unwrap()[0].accounts, None);
    assert!(service.contact_fields(store).await.unwrap().is_empty());
    assert_eq!(service.contact(store, &"k1".into()).await.unwrap().secondary_phones.unwrap(), ["+661"]);
}

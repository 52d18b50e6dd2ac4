//! Tests of ticket filters by labels and fields after writes and imports.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Service, WriteContext,
    conversation_writes::LabelUpdate,
    import::{self, RereadableInput},
    test_service::{Silent, service},
    ticket_updates::{Closing, FieldUpdate},
};
use crate::{
    domain::{
        events::Actor,
        fake_clock_and_test_rules::MovableClock,
        inbound_messages::Inbound,
        ordered_object::Entries,
        ticket_filters::{FieldFilter, FieldOperator, LabelFilter, LabelOperator, Status, TicketFilter},
        tickets::TicketExpand,
    },
    store::fixture::{Fixture, first},
};

struct Shop {
    fixture: Fixture,
    service: Service,
    clock: Arc<MovableClock>,
}

const DAY: i64 = 86_400_000;

impl Shop {
    async fn open() -> Self {
        let (fixture, clock) = (Fixture::new().await, MovableClock::at(400 * DAY));
        let service = service(fixture.db.clone(), clock.clone(), Silent);
        Self { fixture, service, clock }
    }

    fn by<T>(&self) -> WriteContext<'_, T> {
        WriteContext::alone(&self.fixture.store, Actor::System)
    }

    async fn import(&self, records: impl IntoIterator<Item = (&str, Value)>) {
        let at = json!("1970-06-01T00:00:00.000Z");
        let lines = records.into_iter().map(|(kind, mut record)| {
            for property in ["createdAt", "updatedAt"] {
                record[property] = at.clone();
            }
            json!({"kind": kind, "record": record}).to_string()
        });
        let spool = RereadableInput::of_lines(lines).unwrap();
        import::run(&self.fixture.db, self.service.clocks_and_ids(), &self.fixture.store, spool, import::Options::default()).await.unwrap();
    }

    /// Returns the matching tickets: an imported ticket as its id, a ticket that was created later as `new`.
    async fn found(&self, filter: TicketFilter) -> String {
        let filter = TicketFilter { statuses: vec![Status::Open, Status::Closed], ..filter };
        let page = self.service.tickets(&self.fixture.store, filter, first(9), TicketExpand::default()).await.unwrap();
        let name = |id: &str| if id.starts_with('k') { id.to_owned() } else { "new".to_owned() };
        let mut ids: Vec<String> = page.rows.into_iter().map(|view| name(view.ticket.id.as_str())).collect();
        ids.sort();
        ids.join(" ")
    }

    async fn labelled(&self, operator: LabelOperator, labels: &[&str]) -> String {
        let labels = LabelFilter { operator, label_ids: labels.iter().map(|id| (*id).into()).collect() };
        self.found(TicketFilter { labels: Some(labels), ..TicketFilter::default() }).await
    }

    async fn having(&self, field: &str, operator: FieldOperator, value: Value) -> String {
        let field = FieldFilter { field_id: field.into(), operator, value: Some(value), min: None, max: None };
        self.found(TicketFilter { fields: vec![field], ..TicketFilter::default() }).await
    }

    async fn relabel(&self, add: &[&str], remove: &[&str]) {
        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).into()).collect();
        let update = LabelUpdate { conversation_id: "v1".into(), add: ids(add), remove: ids(remove) };
        self.service.update_conversation_labels(&self.by(), update).await.unwrap();
    }

    async fn set(&self, ticket: &str, field: &str, value: Value) {
        let update = FieldUpdate { ticket_id: ticket.into(), field_id: field.into(), value, stamp: None };
        self.service.update_ticket_field(&self.by(), update, TicketExpand::default()).await.unwrap();
    }
}

fn label(id: &str) -> (&str, Value) {
    ("label", json!({"id": id, "label": id, "color": "#ffffff"}))
}

fn field<'a>(id: &str, display_type: &str, data_type: &str) -> (&'a str, Value) {
    let definition = json!({
        "id": id, "name": id, "displayType": display_type, "dataType": data_type, "sortOrder": 1, "isRequired": false, "active": true,
    });
    ("ticketField", definition)
}

fn conversation<'a>(id: &str, labels: &[&str]) -> (&'a str, Value) {
    let record = json!({
        "id": id, "channel": "line", "accountId": "a1", "contactId": "k1", "displayName": id, "referenceId": id, "labelIds": labels,
        "isSpam": false,
    });
    ("conversation", record)
}

fn ticket<'a>(id: &str, conversation: &str, closed: bool, fields: Value) -> (&'a str, Value) {
    let mut record = json!({
        "id": id, "conversationId": conversation, "isOpen": !closed, "openedAt": "1970-06-01T00:00:00.000Z", "ticketFields": fields,
    });
    if closed {
        record["closedAt"] = json!("1970-06-02T00:00:00.000Z");
    }
    ("ticket", record)
}

#[tokio::test]
async fn filters_find_current_values_and_no_former_ones() {
    use FieldOperator::{ContainsAll, Equal, IsOneOf, StartsWith};
    use LabelOperator::{ContainsAll as All, ContainsAny as Any, DoesNotContainAny as Without};
    let shop = Shop::open().await;
    shop.import([
        label("l1"),
        label("l2"),
        label("l3"),
        field("region", "text", "string"),
        field("score", "integer", "number"),
        field("tags", "multi_select", "string"),
        // Tickets come before their conversations in the file, to test that the order of lines does not matter.
        ticket("k1", "v1", false, json!({"region": "Northern Sea", "score": 7, "tags": ["a", "b"]})),
        ticket("k2", "v1", true, json!({"region": "south", "score": 0})),
        ticket("k3", "v2", false, json!({})),
        conversation("v1", &["l1"]),
        conversation("v2", &[]),
    ])
    .await;
    assert_eq!(shop.labelled(Any, &["l1"]).await, "k1 k2");
    assert_eq!(shop.labelled(Any, &["l2", "l3"]).await, "");
    assert_eq!(shop.labelled(Without, &["l1"]).await, "k3");
    assert_eq!(shop.having("region", StartsWith, json!("NORTH")).await, "k1");
    assert_eq!(shop.having("region", Equal, json!("south")).await, "k2");
    assert_eq!(shop.having("score", IsOneOf, json!([8, 7])).await, "k1");
    assert_eq!(shop.having("score", Equal, json!(-0.0)).await, "k2");
    assert_eq!(shop.having("tags", ContainsAll, json!(["b", "a"])).await, "k1");
    assert_eq!(shop.having("tags", ContainsAll, json!(["b", "c"])).await, "");

    shop.relabel(&["l2", "l3"], &["l1"]).await;
    assert_eq!(shop.labelled(Any, &["l1"]).await, "");
    assert_eq!(shop.labelled(Any, &["l1", "l3"]).await, "k1 k2");
    assert_eq!(shop.labelled(All, &["l2", "l3"]).await, "k1 k2");
    assert_eq!(shop.labelled(All, &["l1", "l2"]).await, "");

    shop.set("k3", "region", json!("northern lights")).await;
    assert_eq!(shop.having("region", StartsWith, json!("north")).await, "k1 k3");
    shop.set("k1", "region", json!("East")).await;
    shop.set("k1", "score", json!(9)).await;
    assert_eq!(shop.having("region", StartsWith, json!("north")).await, "k3");
    assert_eq!(shop.having("region", Equal, json!("East")).await, "k1");
    assert_eq!(shop.having("score", Equal, json!(9)).await, "k1");
    assert_eq!(shop.having("tags", ContainsAll, json!(["a"])).await, "k1");

    // The ticket `k1` is closed, so that a message opens a new ticket. The new ticket has the labels of its conversation.
    let closing = Closing {
        ticket_id: "k1".into(),
        handled_by: None,
        is_converted: None,
        total_revenue: None,
        currency: None,
        fields: serde_json::from_value::<Entries>(json!({"tags": ["z"]})).unwrap(),
    };
    shop.service.close_ticket(&shop.by(), closing, TicketExpand::default()).await.unwrap();
    assert_eq!(shop.having("tags", ContainsAll, json!(["z"])).await, "k1");
    shop.clock.pass(9 * DAY);
    let inbound = Inbound {
        account_id: "a1".into(),
        reference_id: "v1".into(),
        external_id: "x1".into(),
        sender_id: "u1".into(),
        sender_name: None,
        text: Some("hello".into()),
        images: None,
        sent_at: None,
        email_subject: None,
        contact: None,
        not_texts: vec![],
    };
    shop.service.receive(&shop.fixture.store, inbound).await.unwrap();
    assert_eq!(shop.labelled(All, &["l2", "l3"]).await, "k1 k2 new");

    // When an import replaces a conversation, the tickets of the conversation get its new labels. When an import replaces a ticket, the
    // ticket keeps the labels of its conversation.
    shop.import([conversation("v1", &["l1"]), ticket("k3", "v2", false, json!({"region": "west"}))]).await;
    assert_eq!(shop.labelled(Any, &["l1"]).await, "k1 k2 new");
    assert_eq!(shop.labelled(Any, &["l2", "l3"]).await, "");
    assert_eq!(shop.having("region", Equal, json!("west")).await, "k3");
    assert_eq!(shop.having("region", StartsWith, json!("north")).await, "");
    shop.import([ticket("k2", "v1", true, json!({"score": 3}))]).await;
    assert_eq!(shop.labelled(Any, &["l1"]).await, "k1 k2 new");
    assert_eq!(shop.having("score", Equal, json!(3)).await, "k2");
}

//! Row mapping: converts a record into table rows. Every column that a record determines is set, so that an upsert replaces the record.
//! Columns that follow from other records get a neutral value here and are set by `derived_columns`.

use sea_orm::ActiveValue::{NotSet, Set};

use crate::{
    domain::{
        custom_fields::Comparable,
        messages::received_order,
        ndjson_records::{Account, Comment, Contact, Conversation, Direction, ImportedTicket, Label, Message, Team, Template, User},
        time::Timestamp,
        unicode_text::fold,
    },
    store::{
        entity::{
            accounts, contacts, conversations, internal_comments, labels, messages, teams, templates, ticket_field_values, tickets, users,
        },
        import::PLACEHOLDER_PREFIX,
        ndjson_record_columns::NdjsonRecord,
        tickets::bloom_filters::{BloomBits, FieldBloomBits},
    },
};

pub fn user(store: &str, record: User, created_at: i64) -> users::ActiveModel {
    users::ActiveModel { created_at: Set(created_at), ..record.into_row(store) }
}

pub fn team(store: &str, record: Team, created_at: i64) -> teams::ActiveModel {
    teams::ActiveModel { created_at: Set(created_at), ..record.into_row(store) }
}

pub fn account(store: &str, record: Account, created_at: i64) -> accounts::ActiveModel {
    let updated_at = record.updated_at.map_or(created_at, Timestamp::millis);
    accounts::ActiveModel { created_at: Set(created_at), updated_at: Set(updated_at), ..record.into_row(store) }
}

pub fn template(store: &str, record: Template) -> templates::ActiveModel {
    let mut search_text = fold(&record.name);
    let components: Vec<serde_json::Value> = serde_json::from_str(record.components.get()).unwrap_or_default();
    for component in components.iter().filter(|component| component["type"] == "BODY") {
        search_text.push('\n');
        search_text.push_str(&fold(component["text"].as_str().unwrap_or_default()));
    }
    templates::ActiveModel { search_text: Set(search_text), ..record.into_row(store) }
}

pub fn label(store: &str, record: Label, created_at: i64) -> labels::ActiveModel {
    let (folded, updated_at) = (fold(&record.label), record.updated_at.map_or(created_at, Timestamp::millis));
    let row = record.into_row(store);
    labels::ActiveModel { folded: Set(folded), created_at: Set(created_at), updated_at: Set(updated_at), ..row }
}

pub fn contact(store: &str, mut record: Contact) -> contacts::ActiveModel {
    record.custom_fields = record.custom_fields.filter(|fields| !fields.is_empty());
    let email_key = record.email.as_deref().map(str::to_lowercase);
    contacts::ActiveModel { email_key: Set(email_key), ..record.into_row(store) }
}

pub fn conversation(store: &str, record: Conversation) -> conversations::ActiveModel {
    conversations::ActiveModel {
        unread_count: Set(record.unread_msg_cnt),
        message_count: Set(0),
        label_marks: Set(BloomBits::of_labels(&record.label_ids).bits()),
        last_inbound_at: Set(None),
        last_message_at: Set(None),
        last_message_snippet: Set(None),
        last_message_inbound: Set(None),
        sort_at: Set(record.created_at.millis()),
        ..record.into_row(store)
    }
}

/// Converts a ticket. Channel, account and contact stay empty if the record does not state them: `derived_columns` takes them from the
/// conversation at the end. If the record states no ticket number, the number is a placeholder until then.
pub fn ticket(store: &str, record: ImportedTicket) -> tickets::ActiveModel {
    let ImportedTicket { ticket, values } = record;
    let opened_at = ticket.opened_at.millis();
    let created_at = ticket.created_at.map_or(opened_at, Timestamp::millis);
    let marks: FieldBloomBits = values.iter().map(|(field, values)| FieldBloomBits::of(field, values)).collect();
    tickets::ActiveModel {
        ticket_number: Set(ticket.ticket_number.clone().unwrap_or_else(|| format!("{PLACEHOLDER_PREFIX}{}", ticket.id))),
        channel: Set(ticket.channel.as_ref().map(|channel| channel.0.clone()).unwrap_or_default()),
        contact_id: Set(ticket.contact_id.as_ref().map(ToString::to_string).unwrap_or_default()),
        account_id: Set(ticket.account_id.as_ref().map(ToString::to_string).unwrap_or_default()),
        resolution_status: Set(ticket.resolution_status.clone()),
        // `derived_columns` sets the Bloom filter of the labels from the conversation at the end.
        label_marks: Set(0),
        field_marks: Set(marks.field_marks.bits()),
        text_marks: Set(marks.text_marks.bits()),
        sort_at: Set(opened_at),
        waiting_since: Set(None),
        created_at: Set(created_at),
        updated_at: Set(ticket.updated_at.map_or(created_at, Timestamp::millis)),
        ..ticket.into_row(store)
    }
}

pub fn field_values(store: &str, record: &ImportedTicket) -> impl Iterator<Item = ticket_field_values::Model> {
    record.values.iter().flat_map(move |(field, values)| {
        values.iter().zip(0_i64..).map(move |(value, position)| {
            let (text_value, number_value) = match value {
                Comparable::Text(text) => (Some(text.clone()), None),
                Comparable::Number(number) => (None, Some(*number)),
            };
            ticket_field_values::Model {
                store_id: store.to_owned(),
                ticket_id: record.ticket.id.to_string(),
                field_id: field.to_string(),
                position,
                text_value,
                number_value,
                folded: value.folded(),
            }
        })
    })
}

/// Converts a message. The stored delivery state of the message stays, since an imported record contains no delivery state.
pub fn message(store: &str, record: Message, account_id: String, now: Timestamp) -> messages::ActiveModel {
    let (sent_at, inbound) = (record.sent_at, record.direction == Direction::Inbound);
    let order = |received_at| if inbound { received_order(sent_at, received_at) } else { sent_at };
    // If the record does not say when the message was received, the message counts as received when it was sent. But if it is an inbound
    // message that was sent further in the future than clocks may differ (see `received_order`), it counts as received now.
    let received_at = record.created_at.unwrap_or_else(|| order(now));
    let sort_at = order(received_at);
    let created_at = received_at.millis();
    messages::ActiveModel {
        account_id: Set(account_id),
        inbound: Set(inbound),
        sent_at: Set(sort_at.millis()),
        channel_sent_at: Set((sent_at != sort_at).then_some(sent_at.millis())),
        delivery: NotSet,
        failure: NotSet,
        created_at: Set(created_at),
        updated_at: Set(record.updated_at.map_or(created_at, Timestamp::millis)),
        ..record.into_row(store)
    }
}

pub fn comment(store: &str, record: Comment) -> internal_comments::ActiveModel {
    let created_at = record.created_at.unwrap_or(record.sent_at).millis();
    let updated_at = record.updated_at.map_or(created_at, Timestamp::millis);
    internal_comments::ActiveModel { created_at: Set(created_at), updated_at: Set(updated_at), ..record.into_row(store) }
}

#[cfg(test)]
mod tests {
    use sea_orm::{ActiveModelTrait, EntityTrait, IdenStatic, Iterable};
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::ndjson_records::{ContactField, Role, TicketField};

    fn record<T: DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).unwrap()
    }

    fn columns_not_set<A: ActiveModelTrait>(row: &A) -> Vec<&'static str> {
        let columns = <A::Entity as EntityTrait>::Column::iter();
        columns.filter(|column| row.get(*column).is_not_set()).map(|column| column.as_str()).collect()
    }

    /// A column that is not set would keep its former value when the import replaces a record.
    #[test]
    fn the_row_of_a_record_sets_every_column_that_an_import_replaces() {
        let at = "2024-01-01T00:00:00.000Z";
        let complete: [Vec<&str>; 10] = [
            columns_not_set(&record::<Role>(json!({ "id": "r", "name": "Owner", "kind": "owner" })).into_row("s")),
            columns_not_set(&user("s", record(json!({ "id": "u" })), 1)),
            columns_not_set(&team("s", record(json!({ "id": "t", "name": "Night", "users": [] })), 1)),
            columns_not_set(&account("s", record(json!({ "id": "a", "channel": "line", "name": "A", "status": "healthy" })), 1)),
            columns_not_set(&template(
                "s",
                record(json!({
                    "id": "t", "accountId": "a", "name": "T", "parameter_format": "NAMED", "language": "en", "status": "APPROVED",
                    "category": "UTILITY", "components": [],
                })),
            )),
            columns_not_set(&label("s", record(json!({ "id": "l", "label": "L", "color": "#000000" })), 1)),
            columns_not_set(
                &record::<ContactField>(json!({
                    "id": "f", "name": "F", "displayType": "text", "dataType": "string", "sortOrder": 1, "active": true,
                }))
                .into_row("s"),
            ),
            columns_not_set(
                &record::<TicketField>(json!({
                    "id": "f", "name": "F", "displayType": "text", "dataType": "string", "sortOrder": 1, "isRequired": false, "active": true,
                    "createdAt": at, "updatedAt": at,
                }))
                .into_row("s"),
            ),
            columns_not_set(&comment(
                "s",
                record(json!({ "id": "c", "conversationId": "c", "text": "Hello", "createdBy": "u", "sentAt": at })),
            )),
            columns_not_set(
                &field_values("s", &imported(at)).next().map(ticket_field_values::ActiveModel::from).unwrap(),
            ),
        ];
        assert!(complete.iter().all(Vec::is_empty), "{complete:?}");
        let contact = contact("s", record(json!({ "id": "c", "fullName": "C", "firstName": "C", "createdAt": at, "updatedAt": at })));
        let conversation = conversation(
            "s",
            record(json!({
                "id": "c", "channel": "line", "accountId": "a", "contactId": "c", "displayName": "C", "referenceId": "U1", "labelIds": [],
                "isSpam": false, "createdAt": at, "updatedAt": at,
            })),
        );
        let ticket = ticket("s", imported(at));
        // The database sets `placed_by`.
        assert_eq!([columns_not_set(&contact), columns_not_set(&conversation), columns_not_set(&ticket)], [["placed_by"]; 3]);
        let message = record(json!({ "id": "m", "conversationId": "c", "direction": "inbound", "sentAt": at }));
        let message = message_row(message);
        assert_eq!(columns_not_set(&message), ["delivery", "failure"]);
    }

    fn imported(at: &str) -> ImportedTicket {
        ImportedTicket {
            ticket: record(json!({ "id": "t", "isOpen": true, "openedAt": at, "conversationId": "c" })),
            values: vec![("f".into(), vec![Comparable::Number(1.0)])],
        }
    }

    fn message_row(record: Message) -> messages::ActiveModel {
        message("s", record, "a".to_owned(), Timestamp::from_millis(1))
    }
}

//! Row mapping: converts a record into table rows. Every column that a record determines is set, so that an upsert replaces the record.
//! Columns that follow from other records get a neutral value here and are set by `derived_columns`.

use sea_orm::ActiveValue::{NotSet, Set};
use serde::Serialize;

use crate::{
    domain::{
        custom_fields::Comparable,
        messages::received_order,
        ndjson_records::{
            Account, Comment, Contact, ContactField, Conversation, Direction, ImportedTicket, Label, Message, Role, Team, Template,
            TicketField, User,
        },
        time::Timestamp,
        unicode_text::fold,
    },
    store::{
        entity::{
            accounts, contact_field_definitions, contacts, conversations, internal_comments, labels, messages, roles, teams, templates,
            ticket_field_definitions, ticket_field_values, tickets, users,
        },
        tickets::bloom_filters::{BloomBits, FieldBloomBits},
    },
};

/// Serialises a list or an object of a record as JSON. Serialisation cannot fail for these types.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

pub fn role(store: &str, record: Role) -> roles::Model {
    roles::Model { store_id: store.to_owned(), id: record.id.into_string(), name: record.name, kind: record.kind }
}

pub fn user(store: &str, record: User, created_at: i64) -> users::Model {
    users::Model {
        store_id: store.to_owned(),
        id: record.id.into_string(),
        user_id: record.user_id.map(|id| id.into_string()),
        name: record.name,
        email: record.email,
        role_id: record.role_id.map(|id| id.into_string()),
        created_at,
    }
}

pub fn team(store: &str, record: &Team, created_at: i64) -> teams::Model {
    teams::Model {
        store_id: store.to_owned(),
        id: record.id.to_string(),
        name: record.name.clone(),
        description: record.description.clone(),
        created_at,
    }
}

pub fn account(store: &str, record: &Account, created_at: i64) -> accounts::Model {
    accounts::Model {
        store_id: store.to_owned(),
        id: record.id.to_string(),
        channel: record.channel.0.clone(),
        name: record.name.clone(),
        status: record.status.clone(),
        last_authorized_at: record.last_authorized_at.map(Timestamp::millis),
        metadata: record.metadata.as_ref().map(|raw| raw.get().to_owned()),
        created_at,
        updated_at: record.updated_at.map_or(created_at, Timestamp::millis),
    }
}

pub fn template(store: &str, record: Template) -> templates::Model {
    let mut search_text = fold(&record.name);
    let components: Vec<serde_json::Value> = serde_json::from_str(record.components.get()).unwrap_or_default();
    for component in components.iter().filter(|component| component["type"] == "BODY") {
        search_text.push('\n');
        search_text.push_str(&fold(component["text"].as_str().unwrap_or_default()));
    }
    templates::Model {
        store_id: store.to_owned(),
        id: record.id.into_string(),
        account_id: record.account_id.into_string(),
        name: record.name,
        parameter_format: record.parameter_format,
        language: record.language,
        status: record.status,
        category: record.category,
        components: record.components.get().to_owned(),
        search_text,
    }
}

pub fn label(store: &str, record: Label, created_at: i64) -> labels::Model {
    labels::Model {
        store_id: store.to_owned(),
        id: record.id.into_string(),
        folded: fold(&record.label),
        label: record.label,
        color: record.color,
        created_at,
        updated_at: record.updated_at.map_or(created_at, Timestamp::millis),
    }
}

pub fn contact_field(store: &str, record: ContactField) -> contact_field_definitions::Model {
    contact_field_definitions::Model {
        store_id: store.to_owned(),
        id: record.id.into_string(),
        name: record.name,
        display_type: record.display_type,
        data_type: record.data_type,
        sort_order: record.sort_order,
        active: record.active,
        description: record.description,
        select_options: record.select_options.map(|raw| raw.get().to_owned()),
        regex: record.regex,
        max_items: record.max_items,
    }
}

pub fn ticket_field(store: &str, record: TicketField) -> ticket_field_definitions::Model {
    ticket_field_definitions::Model {
        store_id: store.to_owned(),
        id: record.id.into_string(),
        name: record.name,
        display_type: record.display_type,
        data_type: record.data_type,
        sort_order: record.sort_order,
        is_required: record.is_required,
        active: record.active,
        description: record.description,
        select_options: record.select_options.map(|raw| raw.get().to_owned()),
        regex: record.regex,
        show_conditions: record.show_conditions.map(|raw| raw.get().to_owned()),
        max_items: record.max_items,
        account_ids: record.account_ids.as_ref().map(json),
        created_at: record.created_at.millis(),
        updated_at: record.updated_at.millis(),
    }
}

pub fn contact(store: &str, record: Contact) -> contacts::ActiveModel {
    let row = contacts::Model {
        store_id: store.to_owned(),
        id: record.id.into_string(),
        full_name: record.full_name,
        first_name: record.first_name,
        last_name: record.last_name,
        email_key: record.email.as_deref().map(str::to_lowercase),
        email: record.email,
        phone: record.phone,
        secondary_phones: record.secondary_phones.as_ref().map(json),
        secondary_emails: record.secondary_emails.as_ref().map(json),
        addresses: record.addresses.as_ref().map(json),
        note: record.note,
        custom_fields: record.custom_fields.filter(|fields| !fields.is_empty()).as_ref().map(json),
        custom_fields_updated_at: record.custom_fields_updated_at.map(Timestamp::millis),
        created_at: record.created_at.millis(),
        updated_at: record.updated_at.millis(),
        placed_by: 0,
    };
    contacts::ActiveModel { placed_by: NotSet, ..row.into() }
}

pub fn conversation(store: &str, record: &Conversation) -> conversations::ActiveModel {
    let row = conversations::Model {
        store_id: store.to_owned(),
        id: record.id.to_string(),
        channel: record.channel.0.clone(),
        account_id: record.account_id.to_string(),
        contact_id: record.contact_id.to_string(),
        display_name: record.display_name.clone(),
        reference_id: record.reference_id.clone(),
        label_ids: json(&record.label_ids),
        is_spam: record.is_spam,
        unread_count: record.unread_msg_cnt,
        message_count: 0,
        email_subject: record.email_subject.clone(),
        label_marks: BloomBits::of_labels(&record.label_ids).bits(),
        last_inbound_at: None,
        last_message_at: None,
        last_message_snippet: None,
        last_message_inbound: None,
        sort_at: record.created_at.millis(),
        created_at: record.created_at.millis(),
        updated_at: record.updated_at.millis(),
        placed_by: 0,
    };
    conversations::ActiveModel { placed_by: NotSet, ..row.into() }
}

/// Converts a ticket. Channel, account and contact stay empty if the record does not state them: `derived_columns` takes them from the
/// conversation at the end.
pub fn ticket(store: &str, record: &ImportedTicket, number: String) -> tickets::ActiveModel {
    let ticket = &record.ticket;
    let opened_at = ticket.opened_at.millis();
    let created_at = ticket.created_at.map_or(opened_at, Timestamp::millis);
    let marks: FieldBloomBits = record.values.iter().map(|(field, values)| FieldBloomBits::of(field, values)).collect();
    let row = tickets::Model {
        store_id: store.to_owned(),
        id: ticket.id.to_string(),
        ticket_number: number,
        is_open: ticket.is_open,
        is_spam: ticket.is_spam,
        is_follow_up: ticket.is_follow_up,
        channel: ticket.channel.as_ref().map(|channel| channel.0.clone()).unwrap_or_default(),
        contact_id: ticket.contact_id.as_ref().map(ToString::to_string).unwrap_or_default(),
        account_id: ticket.account_id.as_ref().map(ToString::to_string).unwrap_or_default(),
        conversation_id: ticket.conversation_id.to_string(),
        opened_at,
        closed_at: ticket.closed_at.map(Timestamp::millis),
        reopened_at: ticket.reopened_at.map(Timestamp::millis),
        snoozed_until: ticket.snoozed_until.map(Timestamp::millis),
        assignee_user_id: ticket.assignee_user_id.as_ref().map(ToString::to_string),
        handled_by: ticket.handled_by.as_ref().map(ToString::to_string),
        resolution_status: ticket.resolution_status.clone(),
        ticket_fields: json(&ticket.ticket_fields),
        ticket_fields_updated_at: ticket.ticket_fields_updated_at.map(Timestamp::millis),
        // `derived_columns` sets the Bloom filter of the labels from the conversation at the end.
        label_marks: 0,
        field_marks: marks.field_marks.bits(),
        text_marks: marks.text_marks.bits(),
        sort_at: opened_at,
        waiting_since: None,
        created_at,
        updated_at: ticket.updated_at.map_or(created_at, Timestamp::millis),
        placed_by: 0,
    };
    tickets::ActiveModel { placed_by: NotSet, ..row.into() }
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
        store_id: Set(store.to_owned()),
        id: Set(record.id.into_string()),
        conversation_id: Set(record.conversation_id.into_string()),
        account_id: Set(account_id),
        inbound: Set(inbound),
        sent_at: Set(sort_at.millis()),
        channel_sent_at: Set((sent_at != sort_at).then_some(sent_at.millis())),
        text: Set(record.text),
        images: Set(record.images.as_ref().map(json)),
        kind: Set(record.kind),
        author_user_id: Set(record.author_user_id.map(|id| id.into_string())),
        is_sent_from_app: Set(record.is_sent_from_app),
        sender: Set(record.sender.map(|raw| raw.get().to_owned())),
        payload: Set(record.payload.map(|raw| raw.get().to_owned())),
        external_id: Set(record.external_id),
        delivery: NotSet,
        failure: NotSet,
        created_at: Set(created_at),
        updated_at: Set(record.updated_at.map_or(created_at, Timestamp::millis)),
    }
}

pub fn comment(store: &str, record: Comment) -> internal_comments::Model {
    let sent_at = record.sent_at.millis();
    let created_at = record.created_at.map_or(sent_at, Timestamp::millis);
    internal_comments::Model {
        store_id: store.to_owned(),
        id: record.id.into_string(),
        conversation_id: record.conversation_id.into_string(),
        text: record.text,
        created_by: record.created_by.into_string(),
        sent_at,
        created_at,
        updated_at: record.updated_at.map_or(created_at, Timestamp::millis),
    }
}

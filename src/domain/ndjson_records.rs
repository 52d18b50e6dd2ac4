//! NDJSON record types of import and export: one record per line.
//!
//! Properties that are also in the API contract have the names and the order that the contract gives them. An import reads what an export
//! writes. If an export is imported into an empty store (tenant), an export of that store is byte-identical to the first export. These
//! types define only the shape of the records; the import validates the values of the properties.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de};
use serde_json::{Map, Value, value::RawValue};

use super::{
    ids::{
        AccountId, CommentId, ContactId, ConversationId, FieldId, LabelId, MessageId, RoleId, SeatId, TeamId, TemplateId, TicketId, UserId,
    },
    ordered_object::{self, Entries},
    stores_and_accounts::Channel,
    time::Timestamp,
};

/// A record and its line number.
#[derive(Clone, Debug)]
pub struct Line<T> {
    pub number: u64,
    pub record: T,
}

/// The kinds of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKind {
    Role,
    User,
    Team,
    Account,
    Template,
    Label,
    ContactField,
    TicketField,
    Contact,
    Conversation,
    Ticket,
    Message,
    Comment,
}

impl RecordKind {
    /// Every kind, in the order of an export: a kind comes after the kinds to which its records refer.
    pub const ALL: [Self; 13] = [
        Self::Role,
        Self::User,
        Self::Team,
        Self::Account,
        Self::Template,
        Self::Label,
        Self::ContactField,
        Self::TicketField,
        Self::Contact,
        Self::Conversation,
        Self::Ticket,
        Self::Message,
        Self::Comment,
    ];

    /// Returns the name of the kind, as it appears in a line of the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Role => "role",
            Self::User => "user",
            Self::Team => "team",
            Self::Account => "account",
            Self::Template => "template",
            Self::Label => "label",
            Self::ContactField => "contactField",
            Self::TicketField => "ticketField",
            Self::Contact => "contact",
            Self::Conversation => "conversation",
            Self::Ticket => "ticket",
            Self::Message => "message",
            Self::Comment => "comment",
        }
    }

    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Defines the record types uniformly: their properties have the names of the contract (camel case), and unknown properties are refused.
macro_rules! records {
    ($($(#[$doc:meta])* $name:ident { $($(#[$attribute:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct $name {
            $($(#[$attribute])* pub $field: $type,)*
        }
    )*};
}

records! {
    Role {
        id: RoleId,
        name: String,
        /// What users with this role may do in the settings: `owner`, `admin` or `agent`.
        kind: String,
    }

    User {
        /// The seat's id.
        id: SeatId,
        /// The id of the person, a UUID. Records refer to assignees, authors and team members by this id. Absent: the invitation is not
        /// accepted yet.
        #[serde(skip_serializing_if = "Option::is_none")]
        user_id: Option<UserId>,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        email: Option<String>,
        /// The id of a role that the file or the store contains.
        #[serde(skip_serializing_if = "Option::is_none")]
        role_id: Option<RoleId>,
        #[serde(skip_serializing_if = "Option::is_none")]
        created_at: Option<Timestamp>,
    }

    Team {
        id: TeamId,
        name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// The userIds of the team's members.
        users: Vec<UserId>,
        #[serde(skip_serializing_if = "Option::is_none")]
        created_at: Option<Timestamp>,
    }

    Account {
        id: AccountId,
        /// Such as `line`, `whatsapp`, `instagram`, `facebook`, `shopee`, `lazada`, `tiktok`, `widget`, `gmail`.
        channel: Channel,
        name: String,
        /// `healthy`, `degraded`, `reauthorization_required`, `restricted` or `disconnected`.
        status: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        last_authorized_at: Option<Timestamp>,
        /// Data about the account that its channel provides: a JSON object in which no value is `null`. `userName` and `country` must be
        /// strings, and `followerCount` a whole number. Other members are accepted.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<Value>")]
        metadata: Option<Box<RawValue>>,
        /// The ids of the users who may see the conversations of this account. Absent: every user.
        #[serde(skip_serializing_if = "Option::is_none")]
        user_ids: Option<Vec<UserId>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        created_at: Option<Timestamp>,
        #[serde(skip_serializing_if = "Option::is_none")]
        updated_at: Option<Timestamp>,
    }

    Template {
        id: TemplateId,
        account_id: AccountId,
        name: String,
        #[serde(rename = "parameter_format")]
        parameter_format: String,
        language: String,
        status: String,
        category: String,
        #[schemars(with = "Vec<Value>")]
        components: Box<RawValue>,
    }

    Label {
        id: LabelId,
        label: String,
        color: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        created_at: Option<Timestamp>,
        #[serde(skip_serializing_if = "Option::is_none")]
        updated_at: Option<Timestamp>,
    }

    ContactField {
        id: FieldId,
        name: String,
        display_type: String,
        /// The type of the values.
        data_type: String,
        sort_order: i64,
        active: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<Value>")]
        select_options: Option<Box<RawValue>>,
        /// The regular expression that a text value must match.
        #[serde(skip_serializing_if = "Option::is_none")]
        regex: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        max_items: Option<i64>,
    }

    TicketField {
        id: FieldId,
        name: String,
        display_type: String,
        /// The type of the values.
        data_type: String,
        sort_order: i64,
        is_required: bool,
        active: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<Value>")]
        select_options: Option<Box<RawValue>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        regex: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<Value>")]
        show_conditions: Option<Box<RawValue>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        max_items: Option<i64>,
        /// The accounts for whose tickets the field is shown. Absent: all accounts.
        #[serde(skip_serializing_if = "Option::is_none")]
        account_ids: Option<Vec<AccountId>>,
        created_at: Timestamp,
        updated_at: Timestamp,
    }

    Contact {
        id: ContactId,
        full_name: String,
        first_name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        last_name: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        email: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phone: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        secondary_phones: Option<Vec<String>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        secondary_emails: Option<Vec<String>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        addresses: Option<Vec<String>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
        /// The values of contact fields. Each key is the id of a contact field.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "ordered_object::exact_if_any")]
        #[schemars(with = "Option<Map<String, Value>>")]
        custom_fields: Option<Entries>,
        #[serde(skip_serializing_if = "Option::is_none")]
        custom_fields_updated_at: Option<Timestamp>,
        created_at: Timestamp,
        updated_at: Timestamp,
    }

    Conversation {
        id: ConversationId,
        channel: Channel,
        account_id: AccountId,
        contact_id: ContactId,
        display_name: String,
        /// The id of the thread on its channel, such as a phone number or a LINE user id.
        reference_id: String,
        label_ids: Vec<LabelId>,
        is_spam: bool,
        #[serde(default)]
        unread_msg_cnt: i64,
        #[serde(skip_serializing_if = "Option::is_none")]
        email_subject: Option<String>,
        created_at: Timestamp,
        updated_at: Timestamp,
        // The API returns conversations with the next three properties. An import accepts them, so that such a conversation can be imported
        // unchanged.
        /// An import ignores this property and counts the messages instead.
        #[serde(default, skip_serializing)]
        #[schemars(with = "Option<Value>")]
        all_msg_cnt: Option<de::IgnoredAny>,
        /// An import ignores this property and reads the value from the messages instead.
        #[serde(default, skip_serializing)]
        #[schemars(with = "Option<Value>")]
        last_recipient_msg_date: Option<de::IgnoredAny>,
        /// An import ignores this property and reads the value from the messages instead.
        #[serde(default, skip_serializing)]
        #[schemars(with = "Option<Value>")]
        last_msg: Option<de::IgnoredAny>,
    }

    Ticket {
        id: TicketId,
        /// Absent: the import assigns the next ticket number of the store.
        #[serde(skip_serializing_if = "Option::is_none")]
        ticket_number: Option<String>,
        is_open: bool,
        opened_at: Timestamp,
        conversation_id: ConversationId,
        // Each of the next three properties is copied from the conversation if it is absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        channel: Option<Channel>,
        #[serde(skip_serializing_if = "Option::is_none")]
        account_id: Option<AccountId>,
        #[serde(skip_serializing_if = "Option::is_none")]
        contact_id: Option<ContactId>,
        #[serde(default)]
        is_spam: bool,
        #[serde(default)]
        is_follow_up: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        closed_at: Option<Timestamp>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reopened_at: Option<Timestamp>,
        #[serde(skip_serializing_if = "Option::is_none")]
        snoozed_until: Option<Timestamp>,
        #[serde(skip_serializing_if = "Option::is_none")]
        assignee_user_id: Option<UserId>,
        #[serde(skip_serializing_if = "Option::is_none")]
        handled_by: Option<UserId>,
        /// An import accepts this in place of `ticketFields.resolutionStatus`. An export writes `ticketFields.resolutionStatus`.
        #[serde(skip_serializing)]
        resolution_status: Option<String>,
        /// The values of ticket fields. Each key is the id of a ticket field, or a system key such as `resolutionStatus`.
        #[serde(default, skip_serializing_if = "Entries::is_empty", deserialize_with = "ordered_object::exact")]
        #[schemars(with = "Map<String, Value>")]
        ticket_fields: Entries,
        #[serde(skip_serializing_if = "Option::is_none")]
        ticket_fields_updated_at: Option<Timestamp>,
        #[serde(skip_serializing_if = "Option::is_none")]
        created_at: Option<Timestamp>,
        #[serde(skip_serializing_if = "Option::is_none")]
        updated_at: Option<Timestamp>,
    }

    Message {
        id: MessageId,
        conversation_id: ConversationId,
        direction: Direction,
        sent_at: Timestamp,
        /// Absent if the message has no text, for example if it is an image.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        images: Option<Vec<String>>,
        #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
        kind: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        author_user_id: Option<UserId>,
        #[serde(skip_serializing_if = "Option::is_none")]
        is_sent_from_app: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<Value>")]
        sender: Option<Box<RawValue>>,
        /// The content that the channel sent, in the form in which the API returns it.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<Value>")]
        payload: Option<Box<RawValue>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        external_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        created_at: Option<Timestamp>,
        #[serde(skip_serializing_if = "Option::is_none")]
        updated_at: Option<Timestamp>,
    }

    Comment {
        id: CommentId,
        conversation_id: ConversationId,
        text: String,
        /// The userId of the comment's author.
        created_by: UserId,
        sent_at: Timestamp,
        #[serde(skip_serializing_if = "Option::is_none")]
        created_at: Option<Timestamp>,
        #[serde(skip_serializing_if = "Option::is_none")]
        updated_at: Option<Timestamp>,
    }
}

/// Who sent a message: the contact (`inbound`) or the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Direction {
    Inbound,
    Outbound,
}

/// A ticket with validated field values, and the forms in which ticket filters compare these values.
#[derive(Clone, Debug)]
pub struct ImportedTicket {
    pub ticket: Ticket,
    pub values: Vec<(FieldId, Vec<super::custom_fields::Comparable>)>,
}

/// A record of any kind.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Record {
    Role(Role),
    User(User),
    Team(Team),
    Account(Account),
    Template(Template),
    Label(Label),
    ContactField(ContactField),
    TicketField(TicketField),
    Contact(Contact),
    Conversation(Conversation),
    Ticket(Ticket),
    Message(Message),
    Comment(Comment),
}

impl Record {
    pub fn id(&self) -> &str {
        match self {
            Self::Role(record) => record.id.as_str(),
            Self::User(record) => record.id.as_str(),
            Self::Team(record) => record.id.as_str(),
            Self::Account(record) => record.id.as_str(),
            Self::Template(record) => record.id.as_str(),
            Self::Label(record) => record.id.as_str(),
            Self::ContactField(record) => record.id.as_str(),
            Self::TicketField(record) => record.id.as_str(),
            Self::Contact(record) => record.id.as_str(),
            Self::Conversation(record) => record.id.as_str(),
            Self::Ticket(record) => record.id.as_str(),
            Self::Message(record) => record.id.as_str(),
            Self::Comment(record) => record.id.as_str(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_kind_is_found_by_its_name() {
        for kind in RecordKind::ALL {
            assert_eq!(RecordKind::of(kind.name()), Some(kind));
        }
        assert_eq!(RecordKind::of("tickets"), None);
    }
}

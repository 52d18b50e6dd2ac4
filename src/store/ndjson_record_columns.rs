//! The columns that store the properties of NDJSON records. Import and export convert between records and rows by these lists.

use sea_orm::{ActiveValue::Set, EntityTrait};

use crate::{
    domain::{
        ndjson_records::{
            Account, Comment, Contact, ContactField, Conversation, Direction, Label, Message, Role, Team, Template, Ticket, TicketField,
            User,
        },
        time::Timestamp,
    },
    store::{
        Result,
        entity::{
            accounts, contact_field_definitions, contacts, conversations, internal_comments, labels, messages, roles, teams, templates,
            ticket_field_definitions, tickets, users,
        },
        stored_values::StoredValue,
    },
};

/// A type of NDJSON records whose records are rows of one table.
pub(in crate::store) trait NdjsonRecord: Sized {
    type Entity: EntityTrait;

    /// Returns the record of a row. Properties that are stored in other tables are empty.
    fn from_row(row: <Self::Entity as EntityTrait>::Model) -> Result<Self>;

    /// Returns the row of a record. Columns whose values an import computes are not set (`import::row_mapping`).
    fn into_row(self, store: &str) -> <Self::Entity as EntityTrait>::ActiveModel;
}

/// Implements [`NdjsonRecord`] for record types. The list of a type begins with the properties that have the names of their columns. After
/// `optional`, it has the properties that a record of an import may lack, though each row has a value. After `exported`, it has the
/// properties without a column of the same name and type, each with the function that gives its value in an export. An import sets the
/// columns of the `optional` and `exported` properties in `import::row_mapping`.
macro_rules! ndjson_records {
    ($(
        $record:ident in $table:ident { $($same:ident),+ }
        $(optional { $($optional:ident),+ })?
        $(exported { $($exported:ident: $read:expr),+ })?;
    )*) => {$(
        impl NdjsonRecord for $record {
            type Entity = $table::Entity;

            fn from_row(row: $table::Model) -> Result<Self> {
                Ok(Self {
                    $($($exported: read(&row, $read),)+)?
                    $($same: StoredValue::from_cell(row.$same)?,)+
                    $($($optional: Some(StoredValue::from_cell(row.$optional)?),)+)?
                })
            }

            fn into_row(self, store: &str) -> $table::ActiveModel {
                let mut row = $table::ActiveModel::default();
                row.store_id = Set(store.to_owned());
                $(row.$same = Set(self.$same.into_cell());)+
                row
            }
        }
    )*};
}

/// Calls a function. With this call, the compiler infers the types of a closure from those of the row and the property.
fn read<M, T>(row: &M, read: impl FnOnce(&M) -> T) -> T {
    read(row)
}

ndjson_records! {
    Role in roles { id, name, kind };

    User in users { id, user_id, name, email, role_id } optional { created_at };

    Team in teams { id, name, description } optional { created_at } exported { users: |_| Vec::new() };

    Account in accounts { id, channel, name, status, last_authorized_at, metadata }
    optional { created_at, updated_at }
    exported { user_ids: |_| None };

    Template in templates { id, account_id, name, parameter_format, language, status, category, components };

    Label in labels { id, label, color } optional { created_at, updated_at };

    ContactField in contact_field_definitions {
        id, name, display_type, data_type, sort_order, active, description, select_options, regex, max_items
    };

    TicketField in ticket_field_definitions {
        id, name, display_type, data_type, sort_order, is_required, active, description, select_options, regex, show_conditions, max_items,
        account_ids, created_at, updated_at
    };

    Contact in contacts {
        id, full_name, first_name, last_name, email, phone, secondary_phones, secondary_emails, addresses, note, custom_fields,
        custom_fields_updated_at, created_at, updated_at
    };

    Conversation in conversations {
        id, channel, account_id, contact_id, display_name, reference_id, label_ids, is_spam, email_subject, created_at, updated_at
    }
    exported {
        unread_msg_cnt: |row| row.unread_count,
        all_msg_cnt: |_| None,
        last_recipient_msg_date: |_| None,
        last_msg: |_| None
    };

    Ticket in tickets {
        id, is_open, opened_at, conversation_id, is_spam, is_follow_up, closed_at, reopened_at, snoozed_until, assignee_user_id, handled_by,
        ticket_fields, ticket_fields_updated_at
    }
    optional { ticket_number, channel, account_id, contact_id, created_at, updated_at }
    exported { resolution_status: |_| None };

    Message in messages {
        id, conversation_id, text, images, kind, author_user_id, is_sent_from_app, sender, payload, external_id
    }
    optional { created_at, updated_at }
    exported {
        direction: |row| if row.inbound { Direction::Inbound } else { Direction::Outbound },
        sent_at: |row| Timestamp::from_millis(row.channel_sent_at.unwrap_or(row.sent_at))
    };

    Comment in internal_comments { id, conversation_id, text, created_by, sent_at } optional { created_at, updated_at };
}

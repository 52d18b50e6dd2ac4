//! Bodies of write requests: those that are the same in both revisions (A and B) of the contract, and [`TicketAssignment`], which only
//! revision B uses. This file checks shape and limits. The service checks what depends on stored data, for example whether a ticket is
//! open.

use poem_openapi::Object;
use serde::Deserialize;

use super::value_types::{Amount, Any, EmailText, FieldValues, MAX_EMAIL_CHARS, UserIdText};
use crate::{
    domain::{
        contacts::{is_e164, is_email},
        ids::UserId,
        inbound_messages::Person,
        text_byte_limit::too_long,
        time::Timestamp,
    },
    http::machinery::{error_responses::ApiError, params::ScalarParam},
    service::{
        contact_writes::ContactFieldUpdate,
        ticket_updates::{Assignment, Closing, FieldUpdate},
    },
};

/// A new value of one ticket field.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TicketFieldUpdate {
    /// The ticket whose field is set.
    #[oai(validator(max_length = 64))]
    ticket_id: String,
    /// The field to set, by the `id` of its definition; it must be active, and system keys are refused.
    #[oai(validator(max_length = 64))]
    ticket_field_id: String,
    /// The new value, whose type depends on the field; `null` unsets the field. All its texts together are at most 64 KiB in UTF-8.
    new_value: Any,
    /// The ticket's `ticketFieldsUpdatedAt` as last received (optimistic locking). If the ticket has a different one by now, the write is
    /// refused with 409. If omitted, the write overwrites any later value.
    ticket_fields_updated_at: Option<Timestamp>,
}

impl From<TicketFieldUpdate> for FieldUpdate {
    fn from(input: TicketFieldUpdate) -> Self {
        Self {
            ticket_id: input.ticket_id.into(),
            field_id: input.ticket_field_id.into(),
            value: input.new_value.0,
            stamp: input.ticket_fields_updated_at,
        }
    }
}

/// A ticket to close, and the values to record on it.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TicketClosing {
    /// The ticket to close. If the ticket is already closed, the other values are still recorded.
    #[oai(validator(max_length = 64))]
    ticket_id: String,
    /// The `userId` of the user who handled the ticket, who may differ from the assignee; stored as the ticket's `handledBy`. If omitted,
    /// the stored value is not changed.
    handled_by: Option<UserIdText>,
    /// Whether the ticket counts as a conversion; stored as `isConverted` in the ticket's `ticketFields`. If omitted, the stored value is
    /// not changed.
    is_converted: Option<bool>,
    /// The revenue from the ticket: at most 15 digits, at most four of them after the decimal point.
    total_revenue: Option<Amount>,
    /// The ISO 4217 code of the currency of `totalRevenue`; the store's currency if omitted.
    #[oai(validator(pattern = "^[A-Z]{3}$"))]
    currency: Option<String>,
    /// Field values, keyed by field id; all texts in one value together are at most 64 KiB in UTF-8. `null` is refused: only
    /// PATCH /tickets/field-values unsets a field.
    ticket_fields: Option<FieldValues>,
}

impl TicketClosing {
    pub fn check(self) -> Result<Closing, ApiError> {
        Ok(Closing {
            ticket_id: self.ticket_id.into(),
            handled_by: self.handled_by.map(|id| user_id("body.handledBy", &id.0)).transpose()?,
            is_converted: self.is_converted,
            total_revenue: self.total_revenue.map(|amount| amount.0.get().to_owned()),
            currency: self.currency,
            fields: self.ticket_fields.map(|values| values.0).unwrap_or_default(),
        })
    }
}

/// One ticket's new assignee.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TicketAssignment {
    /// The ticket to assign. It must be open, not spam, and named only once in the request.
    #[oai(validator(max_length = 64))]
    ticket_id: String,
    /// The `userId` of the new assignee, who must have access to the ticket's channel account.
    assignee_user_id: UserIdText,
}

/// The maximum number of tickets that one request may assign.
pub const MAX_ASSIGNMENTS: usize = 50;

impl TicketAssignment {
    pub fn check(items: Vec<Self>) -> Result<Vec<Assignment>, ApiError> {
        if !(1..=MAX_ASSIGNMENTS).contains(&items.len()) {
            return Err(ApiError::field("body", format!("must hold 1 to {MAX_ASSIGNMENTS} items")));
        }
        let one = |(i, item): (usize, Self)| {
            Ok(Assignment {
                ticket_id: item.ticket_id.into(),
                assignee: user_id(&format!("body[{i}].assigneeUserId"), &item.assignee_user_id.0)?,
            })
        };
        items.into_iter().enumerate().map(one).collect()
    }
}

/// A conversation to mark as read.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReadMark {
    /// The conversation whose unread count is set to 0. If the conversation has no open ticket, the answer is 404.
    #[oai(validator(max_length = 64))]
    pub conversation_id: String,
}

/// A new contact.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContactCreation {
    /// The given name, which must not be blank; `fullName` begins with it.
    #[oai(validator(min_length = 1, max_length = 50))]
    first_name: String,
    /// The family name, which must not be blank if sent; `fullName` ends with it.
    #[oai(validator(min_length = 1, max_length = 50))]
    last_name: Option<String>,
    /// An e-mail address that no other contact of the store has as its primary one.
    email: Option<EmailText>,
    /// A phone number in E.164 that no other contact of the store has as its primary one.
    #[oai(validator(max_length = 15, pattern = r"^\+[1-9][0-9]{1,13}$"))]
    phone: Option<String>,
}

impl ContactCreation {
    pub fn check(self) -> Result<Person, ApiError> {
        let email = self.email.map(|email| email.0);
        for (name, value, max) in [
            ("firstName", Some(&self.first_name), 50),
            ("lastName", self.last_name.as_ref(), 50),
            ("email", email.as_ref(), MAX_EMAIL_CHARS),
            ("phone", self.phone.as_ref(), 15),
        ] {
            let Some(value) = value else { continue };
            let place = format!("body.{name}");
            if value.trim().is_empty() {
                return Err(ApiError::field(&place, "must not be blank"));
            }
            if value.chars().count() > max {
                return Err(ApiError::field(&place, format!("must be at most {max} characters long")));
            }
        }
        if email.as_deref().is_some_and(|email| !is_email(email)) {
            return Err(ApiError::field("body.email", "must be an e-mail address, such as mali@example.com"));
        }
        if self.phone.as_deref().is_some_and(|phone| !is_e164(phone)) {
            return Err(ApiError::field("body.phone", "must be a number in E.164: `+`, a country code, and up to 14 digits in all"));
        }
        Ok(Person { first_name: self.first_name, last_name: self.last_name, email, phone: self.phone })
    }
}

/// A new value of one custom field of a contact.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContactFieldInput {
    /// The contact whose custom field is set.
    #[oai(validator(max_length = 64))]
    contact_id: String,
    /// The field to set, by the `id` of its definition; it must be active.
    #[oai(validator(max_length = 64))]
    contact_field_id: String,
    /// The new value, whose type depends on the field; `null` unsets the field. All its texts together are at most 64 KiB in UTF-8.
    value: Any,
    /// The contact's `customFieldsUpdatedAt` as last received or, if that is absent, its `updatedAt` (optimistic locking). If the contact
    /// has a different one by now, the write is refused with 409.
    updated_at: Timestamp,
}

impl From<ContactFieldInput> for ContactFieldUpdate {
    fn from(input: ContactFieldInput) -> Self {
        Self { contact_id: input.contact_id.into(), field_id: input.contact_field_id.into(), value: input.value.0, stamp: input.updated_at }
    }
}

/// Refuses a text that is longer than the server's own limit, which applies to texts for which the contract gives no limit.
pub fn bounded(place: &str, text: &str) -> Result<(), ApiError> {
    too_long(text.len()).map_or(Ok(()), |reason| Err(ApiError::field(place, reason)))
}

fn user_id(place: &str, text: &str) -> Result<UserId, ApiError> {
    UserId::parse(text).map_err(|reason| ApiError::field(place, reason))
}

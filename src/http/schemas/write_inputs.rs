//! The inputs of writes that both revisions share (section 4.3). Shape and limits are checked here; what depends on the
//! store's definitions and states, in the service.

use poem_openapi::Object;
use serde::Deserialize;

use super::value_types::{Amount, Any, EmailText, FieldValues, MAX_EMAIL_CHARS, UserIdText};
use crate::{
    domain::{
        contacts::{is_e164, is_email},
        ids::UserId,
        lengths::too_long,
        receive::Person,
        time::Timestamp,
    },
    http::machinery::{error::ApiError, params::ScalarParam},
    service::{
        contact_writes::ContactFieldUpdate,
        ticket_writes::{Assignment, Closing, FieldUpdate},
    },
};

/// A new value of one ticket field.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TicketFieldUpdate {
    /// The ticket whose field is set.
    ticket_id: String,
    /// The field to set, by the `id` of its definition; it must be active, and system keys are refused.
    ticket_field_id: String,
    /// The type depends on the field; `null` unsets it. Its texts are at most 64 KiB in UTF-8 together.
    new_value: Any,
    /// The ticket's `ticketFieldsUpdatedAt` as last received. The write is refused when it is another by now; omitted, the
    /// write is made whatever happened since.
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

/// What closing a ticket records.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TicketClosing {
    /// The ticket to close; one that is closed already still takes the other values.
    ticket_id: String,
    /// The `userId` of who handled the ticket.
    handled_by: Option<UserIdText>,
    /// Whether the ticket counts as a conversion; recorded under the key `isConverted` of its `ticketFields`, and left as it is when
    /// omitted.
    is_converted: Option<bool>,
    /// At most 15 digits, four of them behind the point.
    total_revenue: Option<Amount>,
    /// ISO 4217 code of `totalRevenue`; the store's currency when omitted.
    #[oai(validator(pattern = "^[A-Z]{3}$"))]
    currency: Option<String>,
    /// Field values, keyed by field id; the texts of each are at most 64 KiB in UTF-8 together. `null` is refused: only PATCH
    /// /tickets/field-values unsets a field.
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
    /// The ticket to assign: open, not spam, and named only once in the request.
    ticket_id: String,
    /// The `userId` of the new assignee, who must have access to the ticket's channel account.
    assignee_user_id: UserIdText,
}

/// The most tickets of one assignment.
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

/// The conversation that was read.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReadMark {
    /// The conversation whose unread count is set to 0; 404 is the answer if it has no open ticket.
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
    /// The family name, which must not be blank where it is sent; `fullName` ends with it.
    #[oai(validator(min_length = 1, max_length = 50))]
    last_name: Option<String>,
    /// An e-mail address that no other contact of the store has as its primary one.
    email: Option<EmailText>,
    /// In E.164; a number that no other contact of the store has as its primary one.
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
    contact_id: String,
    /// The field to set, by the `id` of its definition; it must be active.
    contact_field_id: String,
    /// The type depends on the field; `null` unsets it. Its texts are at most 64 KiB in UTF-8 together.
    value: Any,
    /// The contact's `customFieldsUpdatedAt` as last received; where that is absent, its `updatedAt`.
    updated_at: Timestamp,
}

impl From<ContactFieldInput> for ContactFieldUpdate {
    fn from(input: ContactFieldInput) -> Self {
        Self { contact_id: input.contact_id.into(), field_id: input.contact_field_id.into(), value: input.value.0, stamp: input.updated_at }
    }
}

/// Refuses a text for which the contract gives no limit beyond ours.
pub fn bounded(place: &str, text: &str) -> Result<(), ApiError> {
    too_long(text.len()).map_or(Ok(()), |reason| Err(ApiError::field(place, reason)))
}

fn user_id(place: &str, text: &str) -> Result<UserId, ApiError> {
    UserId::parse(text).map_err(|reason| ApiError::field(place, reason))
}

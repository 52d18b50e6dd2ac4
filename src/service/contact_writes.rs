//! Use-cases that create and change contacts (API contract, section 4.3).

use serde_json::Value;

use super::{Error, Result, Service, WriteContext, WriteOutcome, ticket_updates::must_be_active, write_transaction::begin};
use crate::{
    domain::{
        contacts::Contact,
        custom_fields::MAX_CONTACT_VALUES,
        events::{EventChange, FieldChange},
        ids::{ContactId, FieldId},
        inbound_messages::Person,
        ordered_object::Entries,
        time::Timestamp,
    },
    store::{self, field_definitions::FieldOwner, transaction::store_transaction::Changed},
};

/// A new value of one custom field of a contact.
#[derive(Debug)]
pub struct ContactFieldUpdate {
    pub contact_id: ContactId,
    pub field_id: FieldId,
    /// `null` removes the value.
    pub value: Value,
    /// The version stamp (time of the last change) that the client has seen, for optimistic locking.
    pub stamp: Timestamp,
}

impl Service {
    pub async fn create_contact(&self, by: &WriteContext<'_, Contact>, new: Person) -> Result<WriteOutcome<Contact>> {
        let change = begin!(self, by);
        let contact = self.new_contact(&change, new);
        // A unique index refuses a second contact with the same e-mail address or phone number, so concurrent requests cannot both succeed.
        match change.insert_contact(&contact).await {
            Err(store::Error::Unique(index)) => {
                let field = if index.contains("phone") { "phone" } else { "email" };
                return Err(Error::conflict(format!("body.{field}"), "belongs to another contact of this store"));
            }
            inserted => inserted?,
        }
        change.changed(Changed::Contact(&contact.id));
        change.finish(by, contact).await
    }

    pub async fn update_contact_field(&self, by: &WriteContext<'_, ()>, update: ContactFieldUpdate) -> Result<WriteOutcome<()>> {
        let mut judged =
            self.validate_patterns(by.store, FieldOwner::Contact, MAX_CONTACT_VALUES, &[(update.field_id.clone(), &update.value)]).await?;
        let mut change = begin!(self, by);
        let mut contact =
            change.contact(&update.contact_id).await?.ok_or_else(|| Error::missing("body.contactId", "contact", &update.contact_id))?;
        let field = change
            .contact_field(&update.field_id)
            .await?
            .ok_or_else(|| Error::missing("body.contactFieldId", "contact field", &update.field_id))?;
        must_be_active(&field, "body.contactFieldId")?;
        let value =
            judged.value(&field, MAX_CONTACT_VALUES, update.value).map_err(|reason| Error::invalid("body.value", reason.to_string()))?;
        let stamp = contact.custom_fields_updated_at.unwrap_or(contact.updated_at);
        if update.stamp != stamp {
            return Err(Error::conflict("body.updatedAt", "is not the contact's; it changed since it was read"));
        }
        let mut fields: Entries = match &contact.custom_fields {
            Some(text) => serde_json::from_str(text).map_err(|error| Error::Internal(format!("contact {}: {error}", contact.id)))?,
            None => Entries::default(),
        };
        let old = fields.get(field.id.as_str()).cloned();
        if old != value {
            fields.set(field.id.as_str(), value.clone());
            let text = serde_json::to_string(&fields).map_err(|error| Error::Internal(error.to_string()))?;
            contact.custom_fields = (!fields.is_empty()).then_some(text);
            let next = stamp.next_stamp(change.now());
            contact.custom_fields_updated_at = Some(next);
            contact.updated_at = next.max(contact.updated_at);
            change.save_contact(&contact).await?;
            change.changed(Changed::Contact(&contact.id));
            change.note(EventChange::ContactFieldUpdated { contact, change: FieldChange { field_id: field.id, old, new: value } });
        }
        change.finish(by, ()).await
    }
}

//! Contacts: section 2.6 of the contract.

use super::{ids::ContactId, time::Timestamp};

/// A contact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    pub id: ContactId,
    pub full_name: String,
    pub first_name: String,
    pub last_name: Option<String>,
    pub email: Option<String>,
    /// E.164.
    pub phone: Option<String>,
    pub secondary_phones: Option<Vec<String>>,
    pub secondary_emails: Option<Vec<String>>,
    pub addresses: Option<Vec<String>>,
    pub note: Option<String>,
    /// A JSON object keyed by field id, as text.
    pub custom_fields: Option<String>,
    pub custom_fields_updated_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Which contacts are wanted.
#[derive(Clone, Debug, Default)]
pub struct ContactFilter {
    /// Looked for in name, e-mail and phone, folded; never blank.
    pub search: Option<String>,
    /// Inclusive.
    pub updated_after: Option<Timestamp>,
    /// Exclusive.
    pub updated_before: Option<Timestamp>,
}

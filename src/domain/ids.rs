//! Typed identifiers: opaque strings of 1 to 64 characters. A new record gets a UUIDv7 as its id; an imported record keeps its id. Each
//! record type has an id type of its own, so that ids of different record types cannot be confused.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        #[schemars(inline)]
        pub struct $name(#[schemars(length(min = 1, max = 64))] String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }

            pub fn into_string(self) -> String {
                self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl From<String> for $name {
            fn from(id: String) -> Self {
                Self(id)
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self(id.to_owned())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

ids! {
    /// The id of a store (tenant). Every API key, record and query belongs to one store.
    StoreId,
    TicketId,
    /// The id of the definition of a ticket field or of a contact field, or the key of a built-in ticket property such as
    /// `resolutionStatus`.
    FieldId,
    ConversationId,
    ContactId,
    MessageId,
    CommentId,
    LabelId,
    TeamId,
    /// The id of a seat (a person's membership of a store). In the API it is the property `id` of a user.
    SeatId,
    /// The id of a user (a person): a UUID in text form. Records refer to assignees, authors and team members by this id.
    UserId,
    RoleId,
    AccountId,
    TemplateId,
    KeyId,
    /// The id of a webhook: a subscription to events.
    WebhookId,
    /// The id of a draft: a proposed message that a user can release (send).
    DraftId,
    /// The id of a recorded event or of a test event.
    EventId,
    /// The id of a credential of the settings API (a login link, session or token): the hash of the credential's secret.
    CredentialId,
}

/// The number of characters in a UUID.
pub const UUID_CHARS: usize = 36;

/// The maximum number of characters in an id.
pub const MAX_ID_CHARS: usize = 64;

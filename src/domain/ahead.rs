//! The one record that a request names by its id, where it is looked up together with the key that the request presents: one
//! look-up instead of two. Nothing of it is shown before the key was found good for it.

use super::{
    contacts::Contact,
    conversations::Conversation,
    ids::{ContactId, ConversationId, TicketId},
    tickets::Ticket,
};

/// What a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    Ticket(TicketId),
    Contact(ContactId),
    Conversation(ConversationId),
}

/// What was found of it in the caller's store.
#[derive(Debug, Default)]
pub enum Ahead {
    /// It was not looked for.
    #[default]
    Unknown,
    Ticket(TicketId, Option<Box<Ticket>>),
    Contact(ContactId, Option<Box<Contact>>),
    Conversation(ConversationId, Option<Box<Conversation>>),
}

impl Ahead {
    /// Whether there is such a ticket, and which; `None` where that is not known.
    pub fn ticket(self, id: &TicketId) -> Option<Option<Ticket>> {
        match self {
            Self::Ticket(named, found) if named == *id => Some(found.map(|found| *found)),
            _ => None,
        }
    }

    /// The same of a contact.
    pub fn contact(self, id: &ContactId) -> Option<Option<Contact>> {
        match self {
            Self::Contact(named, found) if named == *id => Some(found.map(|found| *found)),
            _ => None,
        }
    }

    /// The same of a conversation.
    pub fn conversation(self, id: &ConversationId) -> Option<Option<Conversation>> {
        match self {
            Self::Conversation(named, found) if named == *id => Some(found.map(|found| *found)),
            _ => None,
        }
    }
}

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
            Self::Ticket(named, found) => known(&named, id, found),
            _ => None,
        }
    }

    /// The same of a contact.
    pub fn contact(self, id: &ContactId) -> Option<Option<Contact>> {
        match self {
            Self::Contact(named, found) => known(&named, id, found),
            _ => None,
        }
    }

    /// The same of a conversation.
    pub fn conversation(self, id: &ConversationId) -> Option<Option<Conversation>> {
        match self {
            Self::Conversation(named, found) => known(&named, id, found),
            _ => None,
        }
    }
}

/// What was found of one record tells nothing of another.
fn known<I: PartialEq, T>(named: &I, id: &I, found: Option<Box<T>>) -> Option<Option<T>> {
    (named == id).then(|| found.map(|found| *found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_one_record_tells_nothing_of_another() {
        let (one, other) = (TicketId::from("one"), TicketId::from("other"));
        let missing = || Ahead::Ticket(one.clone(), None);
        assert!(matches!(missing().ticket(&one), Some(None)));
        assert!(missing().ticket(&other).is_none());
        assert!(missing().contact(&"one".into()).is_none());
        assert!(missing().conversation(&"one".into()).is_none());
        assert!(Ahead::Unknown.ticket(&one).is_none());
    }
}

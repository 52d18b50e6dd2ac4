//! Rules that are younger than records in stores. An import holds new records to them. An export marks a record that breaks one, and
//! an import takes what is so marked as it is.

use super::{
    entries::Entries,
    lengths::{bytes_of_texts, too_long},
    receive::{NO_PHONE, thread_name},
    records::{Comment, Contact, Conversation, Record, Ticket},
};

/// The path in the record of what breaks a rule, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    pub place: String,
    pub reason: String,
}

impl Comment {
    /// The first breach.
    pub fn breach(&self) -> Option<Breach> {
        text_breach("text", self.text.len())
    }
}

impl Ticket {
    /// The first breach.
    pub fn breach(&self) -> Option<Breach> {
        values_breach("ticketFields", &self.ticket_fields)
    }
}

impl Contact {
    /// The first breach.
    pub fn breach(&self) -> Option<Breach> {
        let note = self.note.as_ref().and_then(|note| text_breach("note", note.len()));
        let addresses = self.addresses.iter().flatten().enumerate();
        let mut addresses = addresses.filter_map(|(place, address)| text_breach(&format!("addresses[{place}]"), address.len()));
        note.or_else(|| addresses.next()).or_else(|| self.custom_fields.as_ref().and_then(|fields| values_breach("customFields", fields)))
    }
}

impl Conversation {
    /// Brings the reference into the form that threads of its channel have.
    pub fn name_thread(&mut self) -> Result<(), Breach> {
        let breach = || Breach { place: "referenceId".to_owned(), reason: NO_PHONE.to_owned() };
        self.reference_id = thread_name(self.channel.as_str(), &self.reference_id).ok_or_else(breach)?;
        Ok(())
    }

    fn is_named_otherwise(&self) -> bool {
        thread_name(self.channel.as_str(), &self.reference_id).as_ref() != Some(&self.reference_id)
    }
}

impl Record {
    /// Whether the record breaks a rule, or an import would change it by one.
    pub fn breaks_a_later_rule(&self) -> bool {
        match self {
            Self::Contact(record) => record.breach().is_some(),
            Self::Ticket(record) => record.breach().is_some(),
            Self::Comment(record) => record.breach().is_some(),
            Self::Conversation(record) => record.is_named_otherwise(),
            _ => false,
        }
    }
}

fn text_breach(place: &str, bytes: usize) -> Option<Breach> {
    too_long(bytes).map(|reason| Breach { place: place.to_owned(), reason })
}

fn values_breach(place: &str, fields: &Entries) -> Option<Breach> {
    fields.0.iter().find_map(|(key, value)| text_breach(&format!("{place}.{key}"), bytes_of_texts(value)))
}

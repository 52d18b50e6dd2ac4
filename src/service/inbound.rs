//! Use-case that receives an inbound message: finds or creates its conversation, contact and ticket.

use super::{
    Error, Result, Service,
    conversation_threads::{ATTEMPTS, NewThread, ThreadError, count, thread_of},
    write_transaction::WriteTransaction,
};
use crate::{
    domain::{
        conversations::Conversation,
        events::{Actor, EventChange},
        ids::{MAX_ID_CHARS, MessageId, StoreId, TicketId},
        inbound_messages::{Inbound, MAX_CHANNEL_ID_CHARS, NO_PHONE, Received, thread_name},
        inbound_signatures::AcceptedSignature,
        messages::{Message, received_order},
        stores_and_accounts::Account,
        tickets::Ticket,
        time::Timestamp,
        unicode_text::is_name,
    },
    store,
};

impl Service {
    /// Receives a message, idempotently: a repeated delivery changes nothing and gets the ids of the first delivery.
    pub async fn receive(&self, store: &StoreId, inbound: Inbound) -> Result<Received> {
        self.receive_signed(store, inbound, None).await
    }

    /// Receives a message from a bridge, as [`Self::receive`] does. A signed request is accepted once. If the server fails to store the
    /// message, the bridge may send the same request again.
    pub async fn receive_signed(&self, store: &StoreId, mut inbound: Inbound, signature: Option<&AcceptedSignature>) -> Result<Received> {
        check(&inbound)?;
        let account = self.db().account(store, &inbound.account_id).await?;
        let account =
            account.ok_or_else(|| Error::invalid("accountId", format!("`{}` is no account of this store", inbound.account_id)))?;
        let ignored = inbound.normalise_details(account.channel.as_str());
        for _ in 0..ATTEMPTS {
            match self.try_receive(store, &account, &inbound, signature).await {
                Ok(received) => return Ok(Received { ignored, ..received }),
                Err(ThreadError::Raced) => {}
                Err(ThreadError::Failed(error)) => return Err(error),
            }
        }
        Err(Error::Unavailable { reason: "other messages of this thread are being received; try again".to_owned(), retry_after: 1 })
    }

    async fn try_receive(
        &self,
        store: &StoreId,
        account: &Account,
        inbound: &Inbound,
        signature: Option<&AcceptedSignature>,
    ) -> std::result::Result<Received, ThreadError> {
        // The write begins with the system as its actor. The contact becomes the actor as soon as it is found or created.
        let mut change = self.begin_alone(store, Actor::System).await?;
        if let Some(signature) = signature
            && !change.accept_signature(signature).await?
        {
            return Err(Error::Replayed.into());
        }
        // An existing conversation is locked before the check for a former delivery of the message. So the second of two concurrent
        // deliveries waits for the first, and then finds the message that the first has stored.
        let thread = thread_of(&change, account, &inbound.reference_id).await?;
        if let Some(former) = change.message_of_channel(&account.id, &inbound.external_id).await? {
            let ticket_id = change.ticket_at(&former.conversation_id, former.received_at).await?;
            let (message_id, conversation_id) = (former.message_id, former.conversation_id);
            // `end` waits until the first delivery is durable. The duplicate is reported only after that.
            change.end().await?;
            tracing::info!(%message_id, %conversation_id, external_id = inbound.external_id, "a message came again");
            return Ok(Received { message_id, conversation_id, ticket_id, duplicate: true, ignored: vec![] });
        }
        // The ticket is locked before the clock is read, so the ticket's close cannot be later than the receipt of the message.
        let former = match &thread {
            Some(conversation) => change.latest_ticket(&conversation.id).await?,
            None => None,
        };
        let at = received_at(change.now(), former.as_ref());
        let mut conversation = match thread {
            Some(conversation) => conversation,
            None => {
                let name = thread_name(account.channel.as_str(), &inbound.reference_id);
                let opening = NewThread {
                    reference_id: name.ok_or_else(|| Error::invalid("referenceId", NO_PHONE))?,
                    person: inbound.person(account.channel.as_str()),
                    email_subject: inbound.email_subject.clone(),
                };
                self.open_thread(&change, account, opening).await?
            }
        };
        change.caused_by(Actor::Contact(conversation.contact_id.clone()));
        let message = self.message(&conversation, inbound, at)?;
        change.insert_message(&message, Some(&inbound.external_id), None)?;
        count(&change, &mut conversation, &message).await?;
        change.inserted(&message, conversation.email_subject.as_deref());
        let ticket = self.ticket_for(&change, &conversation, former, at).await?;
        change.refresh_closed_tickets(&conversation.id, message.sort_at).await?;
        let ticket_id = ticket.as_ref().map(|(ticket, _)| ticket.id.clone());
        let received = Received {
            message_id: message.id.clone(),
            conversation_id: conversation.id,
            ticket_id: ticket_id.clone(),
            duplicate: false,
            ignored: vec![],
        };
        change.note(EventChange::MessageReceived { message, ticket_id });
        if let Some((ticket, Some(reopened))) = ticket {
            change.note(EventChange::TicketOpened { ticket, reopened });
        }
        change.end().await?;
        let Received { message_id, conversation_id, .. } = &received;
        tracing::info!(%message_id, %conversation_id, external_id = inbound.external_id, "a message came");
        Ok(received)
    }

    fn message(&self, conversation: &Conversation, inbound: &Inbound, now: Timestamp) -> Result<Message> {
        let mut sender = serde_json::Map::new();
        sender.insert("id".to_owned(), inbound.sender_id.clone().into());
        if let Some(name) = &inbound.sender_name {
            sender.insert("name".to_owned(), name.clone().into());
        }
        sender.insert("type".to_owned(), "contact".into());
        let sender = serde_json::to_string(&sender).map_err(|error| Error::Internal(error.to_string()))?;
        let sent_at = inbound.sent_at.unwrap_or(now);
        Ok(Message {
            id: MessageId::from(self.clocks_and_ids().ids.fresh()),
            conversation_id: conversation.id.clone(),
            account_id: conversation.account_id.clone(),
            inbound: true,
            sent_at,
            sort_at: received_order(sent_at, now),
            // Empty texts count as absent, as in an import.
            text: inbound.text.clone().filter(|text| !text.is_empty()),
            images: inbound.images.clone().filter(|images| !images.is_empty()),
            kind: None,
            author_user_id: None,
            is_sent_from_app: None,
            sender: Some(sender),
            payload: None,
            created_at: now,
            updated_at: now,
        })
    }

    /// Finds, reopens or opens the ticket of the message. Returns the ticket with `Some(true)` if the message reopened it, with
    /// `Some(false)` if the message opened it as a new ticket, and with `None` if it was open before. A spam conversation without an open
    /// ticket gets no ticket.
    async fn ticket_for(
        &self,
        change: &WriteTransaction<'_>,
        conversation: &Conversation,
        former: Option<Ticket>,
        now: Timestamp,
    ) -> store::Result<Option<(Ticket, Option<bool>)>> {
        let (id, opened) = match former {
            Some(mut ticket) if ticket.is_open => {
                if ticket.wake() {
                    change.save_ticket(&ticket).await?;
                }
                (ticket.id, None)
            }
            _ if conversation.is_spam => return Ok(None),
            Some(mut ticket) if ticket.may_reopen(change.reopen_window_hours().await?.unwrap_or_default(), now) => {
                ticket.reopen(now);
                change.save_ticket(&ticket).await?;
                (ticket.id, Some(true))
            }
            former => {
                let id = TicketId::from(self.clocks_and_ids().ids.fresh());
                let ticket = Ticket::open(id, change.next_ticket_number().await?, conversation, former.as_ref(), now);
                change.insert_ticket(&ticket).await?;
                (ticket.id, Some(false))
            }
        };
        Ok(change.refresh_ticket_from_messages(&id).await?.map(|ticket| (ticket, opened)))
    }
}

/// Returns the receipt time of a message. It is later than the close of the former ticket; otherwise the message would belong to that
/// ticket.
fn received_at(now: Timestamp, former: Option<&Ticket>) -> Timestamp {
    former.and_then(|ticket| ticket.closed_at).map_or(now, |closed_at| now.max(closed_at.plus_millis(1)))
}

/// Validates the message itself: its ids, text and images. [`Inbound::normalise_details`] normalises the other properties.
fn check(inbound: &Inbound) -> Result<()> {
    let name = |field: &str, text: &str, max: usize| {
        if is_name(text, max) { Ok(()) } else { Err(Error::invalid(field, format!("must have 1 to {max} printable characters"))) }
    };
    name("accountId", inbound.account_id.as_str(), MAX_ID_CHARS)?;
    name("referenceId", &inbound.reference_id, MAX_CHANNEL_ID_CHARS)?;
    name("externalId", &inbound.external_id, MAX_CHANNEL_ID_CHARS)?;
    name("sender.id", &inbound.sender_id, MAX_CHANNEL_ID_CHARS)?;
    if inbound.text.as_deref().is_some_and(|text| text.contains('\0')) {
        return Err(Error::invalid("text", "must not contain the character U+0000"));
    }
    for (place, image) in inbound.images.iter().flatten().enumerate() {
        if image.trim().is_empty() {
            return Err(Error::invalid(format!("images[{place}]"), "must not be blank"));
        }
        if image.contains('\0') {
            return Err(Error::invalid(format!("images[{place}]"), "must not contain the character U+0000"));
        }
    }
    Ok(())
}

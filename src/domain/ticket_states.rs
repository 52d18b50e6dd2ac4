//! Ticket state machine: the states and every transition between them (API contract, section 3.1).
//!
//! A ticket is open, snoozed or closed. Every change of the state uses these transitions, so their side effects are defined once; only an
//! import writes states directly. A unique index of the database ensures that a conversation has at most one open ticket.

use super::{
    conversations::Conversation,
    ids::{TicketId, UserId},
    tickets::Ticket,
    time::Timestamp,
};

/// The state of a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TicketState {
    Open,
    /// Open, but hidden until the snooze ends.
    Snoozed,
    Closed,
}

/// Why a transition is refused. Each text completes the sentence "a ticket that …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("is closed")]
    Closed,
    #[error("is spam")]
    Spam,
    /// The end of a snooze is not in the future.
    #[error("would wake at once")]
    Past,
}

/// The result of an assignment: the previous assignee, if there was one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handover {
    pub previous: Option<UserId>,
}

impl Ticket {
    /// Opens a new ticket: the first of a conversation, or a follow-up of the ticket `former`.
    pub fn open(id: TicketId, number: String, conversation: &Conversation, former: Option<&Self>, now: Timestamp) -> Self {
        Self {
            id,
            number,
            is_open: true,
            is_spam: false,
            is_follow_up: former.is_some(),
            channel: conversation.channel.clone(),
            contact_id: conversation.contact_id.clone(),
            account_id: conversation.account_id.clone(),
            conversation_id: conversation.id.clone(),
            opened_at: now,
            closed_at: None,
            reopened_at: None,
            snoozed_until: None,
            assignee_user_id: None,
            handled_by: None,
            fields: "{}".to_owned(),
            fields_updated_at: None,
            sort_at: now,
            created_at: now,
            updated_at: now,
        }
    }

    pub fn state(&self, now: Timestamp) -> TicketState {
        match (self.is_open, self.snoozed_until) {
            (false, _) => TicketState::Closed,
            (true, Some(until)) if until > now => TicketState::Snoozed,
            (true, _) => TicketState::Open,
        }
    }

    /// Closes the ticket and ends its snooze. `false` if it was closed already.
    pub fn close(&mut self, now: Timestamp) -> bool {
        if !self.is_open {
            return false;
        }
        self.is_open = false;
        self.snoozed_until = None;
        // `closed_at` is not before `opened_at` or `reopened_at`, even if the clock was set back.
        self.closed_at = Some(now.max(self.opened_at).max(self.reopened_at.unwrap_or(now)));
        self.touch(now);
        true
    }

    /// Whether a message that is received at `now` reopens this closed ticket. `hours` is the reopen window; 0 means never, -1 always.
    pub fn may_reopen(&self, hours: i64, now: Timestamp) -> bool {
        match (hours, self.closed_at) {
            _ if self.is_open => false,
            (-1, _) => true,
            (1.., Some(closed_at)) => now.millis().saturating_sub(closed_at.millis()) < hours.saturating_mul(60 * 60 * 1000),
            _ => false,
        }
    }

    /// Reopens a closed ticket, which keeps its assignee. `false` if the ticket was open already.
    pub fn reopen(&mut self, now: Timestamp) -> bool {
        if self.is_open {
            return false;
        }
        self.is_open = true;
        self.snoozed_until = None;
        self.closed_at = None;
        self.reopened_at = Some(now);
        self.touch(now);
        true
    }

    /// Snoozes the ticket, or moves the end of its snooze. `false` if nothing changes. A snooze does not change `updated_at`, since the API
    /// shows nothing of a snooze.
    pub fn snooze(&mut self, until: Timestamp, now: Timestamp) -> Result<bool, Refusal> {
        if !self.is_open {
            return Err(Refusal::Closed);
        }
        if until <= now {
            return Err(Refusal::Past);
        }
        Ok(self.snoozed_until.replace(until) != Some(until))
    }

    /// Ends the snooze. `false` if the ticket had no snooze.
    pub fn wake(&mut self) -> bool {
        self.snoozed_until.take().is_some()
    }

    /// Assigns the ticket to a user. `None` if the ticket was assigned to that user already.
    pub fn assign(&mut self, user: &UserId, now: Timestamp) -> Result<Option<Handover>, Refusal> {
        if self.is_spam {
            return Err(Refusal::Spam);
        }
        if !self.is_open {
            return Err(Refusal::Closed);
        }
        if self.assignee_user_id.as_ref() == Some(user) {
            return Ok(None);
        }
        let previous = self.assignee_user_id.replace(user.clone());
        self.touch(now);
        Ok(Some(Handover { previous }))
    }

    /// Removes the assignee. A closed ticket can lose its assignee too, so that it has none when it is reopened.
    pub fn unassign(&mut self, now: Timestamp) -> Option<UserId> {
        let previous = self.assignee_user_id.take()?;
        self.touch(now);
        Some(previous)
    }

    /// Records which user resolved the ticket. `false` if that user was recorded already.
    pub fn credit(&mut self, user: UserId, now: Timestamp) -> bool {
        if self.handled_by.as_ref() == Some(&user) {
            return false;
        }
        self.handled_by = Some(user);
        self.touch(now);
        true
    }

    fn touch(&mut self, now: Timestamp) {
        self.updated_at = now.max(self.updated_at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::stores_and_accounts::Channel;

    const HOUR: i64 = 60 * 60 * 1000;
    const NOW: Timestamp = Timestamp::from_millis(1_000 * HOUR);
    const OPENED: Timestamp = Timestamp::from_millis(100 * HOUR);
    const CLOSED: Timestamp = Timestamp::from_millis(990 * HOUR);

    fn hours(hours: i64) -> Timestamp {
        NOW.plus_millis(hours * HOUR)
    }

    fn conversation() -> Conversation {
        Conversation {
            id: "c".into(),
            channel: Channel("line".into()),
            account_id: "a".into(),
            contact_id: "k".into(),
            display_name: "C".into(),
            reference_id: "r".into(),
            label_ids: vec![],
            is_spam: false,
            unread_count: 0,
            message_count: 0,
            email_subject: None,
            last_inbound_at: None,
            last_message: None,
            sort_at: OPENED,
            created_at: OPENED,
            updated_at: OPENED,
        }
    }

    /// A ticket that is assigned to `u`.
    fn ticket(state: TicketState) -> Ticket {
        let mut ticket = Ticket::open("t".into(), "1".into(), &conversation(), None, OPENED);
        ticket.assignee_user_id = Some("u".into());
        match state {
            TicketState::Open => {}
            TicketState::Snoozed => ticket.snoozed_until = Some(hours(5)),
            TicketState::Closed => {
                ticket.is_open = false;
                ticket.closed_at = Some(CLOSED);
            }
        }
        ticket
    }

    #[derive(Clone, Copy, Debug)]
    enum Trigger {
        Close,
        Reopen,
        /// Snoozes the ticket until this many hours from now.
        Snooze(i64),
        /// Ends the snooze.
        Wake,
        Assign(&'static str),
        Unassign,
        Credit,
        /// This many hours pass.
        Wait(i64),
    }

    #[derive(Debug, PartialEq, Eq)]
    enum Effect {
        Moved,
        Nothing,
        Refused(Refusal),
    }

    fn pull(ticket: &mut Ticket, trigger: Trigger) -> Effect {
        let moved = match trigger {
            Trigger::Close => ticket.close(NOW),
            Trigger::Reopen => ticket.reopen(NOW),
            Trigger::Wake => ticket.wake(),
            Trigger::Credit => ticket.credit("h".into(), NOW),
            Trigger::Wait(_) => false,
            Trigger::Unassign => ticket.unassign(NOW).is_some(),
            Trigger::Snooze(until) => match ticket.snooze(hours(until), NOW) {
                Ok(moved) => moved,
                Err(refusal) => return Effect::Refused(refusal),
            },
            Trigger::Assign(user) => match ticket.assign(&user.into(), NOW) {
                Ok(handover) => handover.is_some(),
                Err(refusal) => return Effect::Refused(refusal),
            },
        };
        if moved { Effect::Moved } else { Effect::Nothing }
    }

    #[test]
    fn every_trigger_in_every_state_gives_the_state_of_the_table() {
        use Effect::{Moved, Nothing, Refused};
        use TicketState::{Closed, Open, Snoozed};
        use Trigger::{Assign, Close, Credit, Reopen, Snooze, Unassign, Wait, Wake};
        for (from, trigger, effect, to) in [
            (Open, Close, Moved, Closed),
            (Open, Reopen, Nothing, Open),
            (Open, Snooze(1), Moved, Snoozed),
            (Open, Snooze(0), Refused(Refusal::Past), Open),
            (Open, Snooze(-1), Refused(Refusal::Past), Open),
            (Open, Wake, Nothing, Open),
            (Open, Assign("v"), Moved, Open),
            (Open, Assign("u"), Nothing, Open),
            (Open, Unassign, Moved, Open),
            (Open, Credit, Moved, Open),
            (Open, Wait(9), Nothing, Open),
            (Snoozed, Close, Moved, Closed),
            (Snoozed, Reopen, Nothing, Snoozed),
            (Snoozed, Snooze(1), Moved, Snoozed),
            (Snoozed, Snooze(5), Nothing, Snoozed),
            (Snoozed, Snooze(0), Refused(Refusal::Past), Snoozed),
            (Snoozed, Wake, Moved, Open),
            (Snoozed, Assign("v"), Moved, Snoozed),
            (Snoozed, Assign("u"), Nothing, Snoozed),
            (Snoozed, Unassign, Moved, Snoozed),
            (Snoozed, Credit, Moved, Snoozed),
            (Snoozed, Wait(4), Nothing, Snoozed),
            (Snoozed, Wait(5), Nothing, Open),
            (Closed, Close, Nothing, Closed),
            (Closed, Reopen, Moved, Open),
            (Closed, Snooze(1), Refused(Refusal::Closed), Closed),
            (Closed, Snooze(0), Refused(Refusal::Closed), Closed),
            (Closed, Wake, Nothing, Closed),
            (Closed, Assign("v"), Refused(Refusal::Closed), Closed),
            (Closed, Assign("u"), Refused(Refusal::Closed), Closed),
            (Closed, Unassign, Moved, Closed),
            (Closed, Credit, Moved, Closed),
            (Closed, Wait(9), Nothing, Closed),
        ] {
            let before = ticket(from);
            let mut after = before.clone();
            let place = format!("{from:?}, {trigger:?}");
            assert_eq!(pull(&mut after, trigger), effect, "{place}");
            let at = if let Wait(passed) = trigger { hours(passed) } else { NOW };
            assert_eq!(after.state(at), to, "{place}");
            if effect != Moved {
                assert_eq!(after, before, "{place}");
            }
            let stamped = effect == Moved && !matches!(trigger, Snooze(_) | Wake);
            assert_eq!(after.updated_at, if stamped { NOW } else { OPENED }, "{place}");
            assert_eq!(after.closed_at.is_some(), to == Closed, "{place}");
            assert_eq!(after.reopened_at.is_some(), matches!(trigger, Reopen) && effect == Moved, "{place}");
            assert!(to == Snoozed || after.snoozed_until.is_none() || matches!(trigger, Wait(_)), "{place}");
            let assignee = match trigger {
                Assign(user) if effect == Moved => Some(UserId::from(user)),
                Unassign => None,
                _ => Some("u".into()),
            };
            assert_eq!(after.assignee_user_id, assignee, "{place}");
        }
    }

    #[test]
    fn transitions_have_their_side_effects() {
        let mut it = ticket(TicketState::Snoozed);
        assert!(it.close(NOW));
        assert_eq!((it.closed_at, it.snoozed_until), (Some(NOW), None));
        assert!(it.reopen(hours(1)));
        assert_eq!((it.closed_at, it.reopened_at, it.opened_at), (None, Some(hours(1)), OPENED));
        // The clock was set back.
        assert!(it.close(hours(-2000)));
        assert_eq!((it.closed_at, it.updated_at), (Some(hours(1)), hours(1)));
        let mut it = ticket(TicketState::Open);
        assert_eq!(it.assign(&"v".into(), NOW), Ok(Some(Handover { previous: Some("u".into()) })));
        assert_eq!(it.unassign(NOW), Some("v".into()));
        assert_eq!(it.unassign(hours(1)), None);
        assert_eq!(it.assign(&"u".into(), NOW), Ok(Some(Handover { previous: None })));
    }

    #[test]
    fn spam_cannot_be_assigned() {
        for state in [TicketState::Open, TicketState::Snoozed, TicketState::Closed] {
            let mut it = Ticket { is_spam: true, ..ticket(state) };
            assert_eq!(it.assign(&"u".into(), NOW), Err(Refusal::Spam));
            assert_eq!(it.unassign(NOW), Some("u".into()));
        }
    }

    #[test]
    fn a_second_ticket_is_a_follow_up() {
        let first = Ticket::open("t".into(), "1".into(), &conversation(), None, NOW);
        assert_eq!((first.state(NOW), first.is_follow_up, first.opened_at, first.sort_at), (TicketState::Open, false, NOW, NOW));
        assert_eq!((first.assignee_user_id.as_ref(), first.fields.as_str()), (None, "{}"));
        assert!(Ticket::open("u".into(), "2".into(), &conversation(), Some(&first), NOW).is_follow_up);
    }

    #[test]
    fn a_ticket_reopens_within_the_window() {
        let closed = |before: i64| Some(NOW.plus_millis(-before));
        for (window, closed_at, expected) in [
            (24, closed(24 * HOUR - 1), true),
            (24, closed(24 * HOUR), false),
            (24, closed(-5), true),
            (0, closed(0), false),
            (-1, closed(900 * HOUR), true),
            (-1, None, true),
            (24, None, false),
            (i64::MAX, closed(900 * HOUR), true),
        ] {
            let it = Ticket { closed_at, ..ticket(TicketState::Closed) };
            assert_eq!(it.may_reopen(window, NOW), expected, "{window} {closed_at:?}");
        }
        assert!(!ticket(TicketState::Open).may_reopen(-1, NOW));
    }
}

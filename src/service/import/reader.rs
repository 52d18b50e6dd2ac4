//! Reader thread of an import: passes over the lines, and sends batches of validated records.

use std::{
    collections::{BTreeMap, HashSet},
    hash::{BuildHasher, RandomState},
};

use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::{
    Definitions, Failure, Peek, Progress, Spool, Summary,
    check::{Check, Wrong},
};
use crate::{
    domain::{
        ids::AccountId,
        lengths::TooLong,
        records::{ImportedTicket, Kind, Line, Ticket},
    },
    store::import::Batch,
};

/// The limits of a batch, in lines and bytes.
const BATCH_LINES: usize = 2_000;
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// A step for the database.
pub enum Step {
    Reach(Vec<String>),
    ReachFormer(Kind, Vec<String>),
    /// The kinds of records in the import.
    Hold(HashSet<Kind>),
    Park(Kind, Vec<String>),
    Put(Box<Batch>),
}

/// The results of the complete passes.
pub struct End {
    pub summary: Summary,
    /// Accounts that ticket fields refer to.
    pub accounts: Vec<AccountId>,
}

/// The state of the store before the import.
pub struct Held {
    pub kinds: Vec<Kind>,
    /// Whether the affected rows must be locked beforehand.
    pub holds: bool,
}

pub struct Reader<'a> {
    spool: &'a Spool,
    definitions: Definitions,
    /// Kinds with records in the store: only these can be replaced.
    held: Vec<Kind>,
    /// Whether the affected rows must be locked beforehand.
    holds: bool,
    progress: Option<Progress>,
    out: mpsc::Sender<Step>,
    seen: HashSet<u128>,
    hashes: (RandomState, RandomState),
    counts: BTreeMap<Kind, u64>,
}

/// The receiver was dropped: the database side failed and reports the error.
struct Hung;

impl<'a> Reader<'a> {
    pub fn new(spool: &'a Spool, definitions: Definitions, store: Held, progress: Option<Progress>, out: mpsc::Sender<Step>) -> Self {
        let hashes = (RandomState::new(), RandomState::new());
        let Held { kinds: held, holds } = store;
        Self { spool, definitions, held, holds, progress, out, seen: HashSet::new(), hashes, counts: BTreeMap::new() }
    }

    pub fn run(mut self) -> Result<End, Failure> {
        if self.holds {
            self.scout()?;
        }
        let accounts = self.survey()?;
        self.walk()?;
        Ok(End { summary: Summary { counts: self.counts.into_iter().collect() }, accounts })
    }

    /// The pass before the others: which rows the import will change.
    fn scout(&mut self) -> Result<(), Failure> {
        let mut reached = HashSet::new();
        let mut conversations = Vec::new();
        let mut former: BTreeMap<Kind, Vec<String>> = BTreeMap::new();
        let mut kinds = HashSet::new();
        let mut lines = self.spool.lines()?;
        while let Some((number, text)) = lines.next()? {
            let peek = Peek::of(number, text)?;
            kinds.insert(peek.kind);
            let conversation = match peek.kind {
                Kind::Conversation => Some(peek.id()?.into_owned()),
                // If it is missing, the second pass reports that.
                Kind::Ticket | Kind::Message | Kind::Comment => peek.conversation(),
                _ => None,
            };
            if let Some(id) = conversation.filter(|id| reached.insert(self.hashes.0.hash_one(id))) {
                conversations.push(id);
            }
            if matches!(peek.kind, Kind::Ticket | Kind::Message) && self.held.contains(&peek.kind) {
                former.entry(peek.kind).or_default().push(peek.id()?.into_owned());
            }
            if number % BATCH_LINES as u64 == 0 && self.reach(&mut conversations, &mut former).is_err() {
                return Ok(());
            }
        }
        // An error means that the receiver was dropped; its side reports the reason.
        let _ = self.reach(&mut conversations, &mut former).and_then(|()| self.send(Step::Hold(kinds)));
        Ok(())
    }

    fn reach(&self, conversations: &mut Vec<String>, former: &mut BTreeMap<Kind, Vec<String>>) -> Result<(), Hung> {
        self.send(Step::Reach(std::mem::take(conversations)))?;
        std::mem::take(former).into_iter().try_for_each(|(kind, ids)| self.send(Step::ReachFormer(kind, ids)))
    }

    /// First pass: definitions, and the unique values that existing records must release for the duration of the import.
    fn survey(&mut self) -> Result<Vec<AccountId>, Failure> {
        let mut batch = Batch::default();
        let mut parked: BTreeMap<Kind, Vec<String>> = BTreeMap::new();
        let mut lines = self.spool.lines()?;
        while let Some((number, text)) = lines.next()? {
            let peek = Peek::of(number, text)?;
            match peek.kind {
                Kind::TicketField => batch.ticket_fields.push(Line { number, record: self.checked(&peek)? }),
                Kind::ContactField => batch.contact_fields.push(Line { number, record: self.checked(&peek)? }),
                kind if self.held.contains(&kind) && replaces(kind) => {
                    let ids = parked.entry(kind).or_default();
                    ids.push(peek.id()?.into_owned());
                    if ids.len() == BATCH_LINES && self.send(Step::Park(kind, std::mem::take(ids))).is_err() {
                        return Ok(Vec::new());
                    }
                }
                _ => {}
            }
            if number % 1024 == 0 {
                self.report(lines.read());
            }
        }
        for (kind, ids) in parked {
            if self.send(Step::Park(kind, ids)).is_err() {
                return Ok(Vec::new());
            }
        }
        self.definitions.add(&batch)?;
        let mut accounts: Vec<AccountId> =
            batch.ticket_fields.iter().flat_map(|line| line.record.account_ids.iter().flatten().cloned()).collect();
        accounts.sort_unstable();
        accounts.dedup();
        // An error means that the receiver was dropped; its side reports the reason.
        let _ = self.send(Step::Put(Box::new(batch)));
        Ok(accounts)
    }

    /// Second pass: everything else.
    fn walk(&mut self) -> Result<(), Failure> {
        let mut batch = Box::<Batch>::default();
        let (mut pending, mut bytes) = (0, 0);
        let mut lines = self.spool.lines()?;
        while let Some((number, text)) = lines.next()? {
            let length = text.len();
            self.take(&Peek::of(number, text)?, &mut batch)?;
            pending += 1;
            bytes += length;
            if pending == BATCH_LINES || bytes >= BATCH_BYTES {
                (pending, bytes) = (0, 0);
                if self.send(Step::Put(std::mem::take(&mut batch))).is_err() {
                    return Ok(());
                }
                self.report(self.spool.bytes() + lines.read());
            }
        }
        let _ = self.send(Step::Put(batch));
        self.report(self.spool.bytes() * 2);
        Ok(())
    }

    fn take(&mut self, peek: &Peek<'_>, batch: &mut Batch) -> Result<(), Failure> {
        let number = peek.line;
        match peek.kind {
            Kind::ContactField | Kind::TicketField => {}
            Kind::Role => batch.roles.push(Line { number, record: self.checked(peek)? }),
            Kind::User => batch.users.push(Line { number, record: self.checked(peek)? }),
            Kind::Team => batch.teams.push(Line { number, record: self.checked(peek)? }),
            Kind::Account => batch.accounts.push(Line { number, record: self.checked(peek)? }),
            Kind::Template => batch.templates.push(Line { number, record: self.checked(peek)? }),
            Kind::Label => batch.labels.push(Line { number, record: self.checked(peek)? }),
            Kind::Contact => batch.contacts.push(Line { number, record: self.checked(peek)? }),
            Kind::Conversation => batch.conversations.push(Line { number, record: self.checked(peek)? }),
            Kind::Message => batch.messages.push(Line { number, record: self.checked(peek)? }),
            Kind::Comment => batch.comments.push(Line { number, record: self.checked(peek)? }),
            Kind::Ticket => {
                let mut ticket: Ticket = self.checked(peek)?;
                let values = self.definitions.ticket_values(&mut ticket).map_err(|wrong| wrong.on(peek))?;
                batch.tickets.push(Line { number, record: ImportedTicket { ticket, values } });
            }
        }
        Ok(())
    }

    /// The record of a line, validated, with an id that has not appeared before.
    fn checked<T: DeserializeOwned + Check>(&mut self, peek: &Peek<'_>) -> Result<T, Failure> {
        let mut record: T = peek.record()?;
        record.check(&self.definitions).map_err(|wrong| wrong.on(peek))?;
        if let Some(TooLong { place, reason }) = record.too_long().filter(|_| !peek.oversized) {
            return Err(Wrong::new(place, reason).on(peek));
        }
        let key = (peek.kind, record.id());
        let hash = (u128::from(self.hashes.0.hash_one(key)) << 64) | u128::from(self.hashes.1.hash_one(key));
        if !self.seen.insert(hash) {
            let id = record.id();
            let first = self.first_line_of(peek.kind, id)?;
            return Err(Failure::line(peek.line, format!("{}.id", peek.kind.name()), format!("`{id}` stands on line {first} already")));
        }
        *self.counts.entry(peek.kind).or_default() += 1;
        Ok(record)
    }

    /// Ends the current pass.
    fn first_line_of(&self, kind: Kind, id: &str) -> Result<u64, Failure> {
        let mut lines = self.spool.lines()?;
        while let Some((number, text)) = lines.next()? {
            let peek = Peek::of(number, text)?;
            if peek.kind == kind && peek.id()? == id {
                return Ok(number);
            }
        }
        Ok(0)
    }

    fn send(&self, step: Step) -> Result<(), Hung> {
        self.out.blocking_send(step).map_err(|_| Hung)
    }

    fn report(&self, done: u64) {
        if let Some(progress) = &self.progress {
            progress(done, self.spool.bytes() * 2);
        }
    }
}

/// Kinds with a unique value per store.
fn replaces(kind: Kind) -> bool {
    matches!(kind, Kind::User | Kind::Contact | Kind::Conversation | Kind::Ticket | Kind::Message)
}

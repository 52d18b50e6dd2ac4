//! Reader thread of an import: validates all lines, then sends their records in batches to the task that writes to the database.

use std::{
    collections::{BTreeMap, HashSet},
    hash::{BuildHasher, RandomState},
};

use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::{
    Definitions, ImportError, LineFault, LineHeader, MAX_FAULTS, Progress, RereadableInput, Summary,
    record_validation::{Check, InvalidProperty},
};
use crate::{
    domain::{
        ids::AccountId,
        ndjson_records::{ImportedTicket, Line, RecordKind, Ticket},
        rules_for_older_records::RuleViolation,
    },
    store::import::Batch,
};

/// The limits of a batch, in lines and bytes.
const BATCH_LINES: usize = 2_000;
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// A step that the reader sends to the task that writes to the database.
pub enum ImportStep {
    /// Adds the conversations with these ids to those whose rows [`Self::LockAffectedRows`] locks.
    NoteConversations(Vec<String>),
    /// Looks up the conversations of the stored records with these ids, and adds them to those whose rows [`Self::LockAffectedRows`] locks.
    NoteFormerConversations(RecordKind, Vec<String>),
    /// Locks the rows that the import changes. Contains the kinds of records in the import.
    LockAffectedRows(HashSet<RecordKind>),
    /// Clears the unique columns of the stored records with these ids, such as a contact's e-mail address, and closes open tickets among
    /// them. The records are replaced later; so two records can exchange such a value.
    ReleaseUniqueValues(RecordKind, Vec<String>),
    /// Writes the records of a batch.
    Write(Box<Batch>),
}

/// The field definitions of the input, to which its other records refer.
pub struct FieldDefinitions(Batch);

/// The result of a reader that has read all records.
pub struct End {
    pub summary: Summary,
    /// Accounts that ticket fields refer to.
    pub accounts: Vec<AccountId>,
}

/// The kinds of records that the store has before the import.
pub struct ExistingRecords {
    pub kinds: Vec<RecordKind>,
    /// Whether the affected rows must be locked before the first change. On PostgreSQL this prevents deadlocks with other writers.
    pub must_lock_rows: bool,
}

pub struct ImportReader {
    definitions: Definitions,
    progress: Option<Progress>,
    /// The number of finished passes over the input, of [`PASSES`].
    passes: u64,
    /// The channel to the task that writes to the database. Absent while lines are only validated.
    out: Option<mpsc::Sender<ImportStep>>,
    /// Faults found so far while lines are only validated.
    faults: Vec<LineFault>,
    /// The kinds of records that the store has: only records of these kinds can be replaced.
    existing_kinds: Vec<RecordKind>,
    /// Whether the affected rows must be locked before the first change.
    must_lock_rows: bool,
    seen: HashSet<u128>,
    hashes: (RandomState, RandomState),
    counts: BTreeMap<RecordKind, u64>,
}

/// The number of passes over the input that the progress counts. The passes read definitions, validate, collect the ids of records to be
/// replaced, and write. The pass that collects the affected rows is not counted.
const PASSES: u64 = 4;

/// The receiver was dropped: the task that writes to the database failed, and reports the error.
struct ReceiverDropped;

impl ImportReader {
    /// Makes a reader that only validates.
    pub fn new(definitions: Definitions, progress: Option<Progress>) -> Self {
        Self {
            definitions,
            progress,
            passes: 0,
            out: None,
            faults: Vec::new(),
            existing_kinds: Vec::new(),
            must_lock_rows: false,
            seen: HashSet::new(),
            hashes: (RandomState::new(), RandomState::new()),
            counts: BTreeMap::new(),
        }
    }

    /// Gives the reader the channel to which it sends the steps of an import that has begun.
    pub fn send_to(self, out: mpsc::Sender<ImportStep>, ExistingRecords { kinds, must_lock_rows }: ExistingRecords) -> Self {
        Self { out: Some(out), existing_kinds: kinds, must_lock_rows, passes: 2, ..self }
    }

    /// Validates every line, without the database.
    pub fn validate(mut self, spool: &RereadableInput) -> Result<FieldDefinitions, ImportError> {
        let fields = self.define(spool)?;
        // Ends here if a definition is wrong. Otherwise each value of a field with a wrong definition would be reported as a further fault.
        self.end_with_faults()?;
        self.read_records(spool)?;
        self.end_with_faults()?;
        Ok(fields)
    }

    /// Sends the steps of an import whose lines were validated.
    pub fn run(mut self, spool: &RereadableInput, FieldDefinitions(batch): FieldDefinitions) -> Result<End, ImportError> {
        if self.must_lock_rows {
            self.collect_affected_rows(spool)?;
        }
        if self.existing_kinds.iter().copied().any(replaces) {
            self.collect_replaced_ids(spool)?;
        }
        self.passes += 1;
        self.definitions.add(&batch)?;
        let mut accounts: Vec<AccountId> =
            batch.ticket_fields.iter().flat_map(|line| line.record.account_ids.iter().flatten().cloned()).collect();
        accounts.sort_unstable();
        accounts.dedup();
        for (kind, count) in [(RecordKind::ContactField, batch.contact_fields.len()), (RecordKind::TicketField, batch.ticket_fields.len())]
        {
            if count > 0 {
                self.counts.insert(kind, count as u64);
            }
        }
        if self.send(ImportStep::Write(Box::new(batch))).is_ok() {
            self.read_records(spool)?;
        }
        Ok(End { summary: Summary { counts: self.counts.into_iter().collect(), exclusive: None }, accounts })
    }

    /// Keeps the faults of a line while lines are only validated, so that a failed import reports several faults.
    fn keep_faults(&mut self, outcome: Result<(), ImportError>) -> Result<(), ImportError> {
        match outcome {
            Err(ImportError::Faults(faults)) if self.out.is_none() => {
                self.faults.extend(faults);
                if self.faults.len() < MAX_FAULTS { Ok(()) } else { self.end_with_faults() }
            }
            outcome => outcome,
        }
    }

    fn end_with_faults(&mut self) -> Result<(), ImportError> {
        if self.faults.is_empty() { Ok(()) } else { Err(ImportError::Faults(std::mem::take(&mut self.faults))) }
    }

    /// Runs the pass that collects the rows that the import will change, so that they are locked before the first change.
    fn collect_affected_rows(&mut self, spool: &RereadableInput) -> Result<(), ImportError> {
        let mut noted = HashSet::new();
        let mut conversations = Vec::new();
        let mut former: BTreeMap<RecordKind, Vec<String>> = BTreeMap::new();
        let mut kinds = HashSet::new();
        let mut lines = spool.lines();
        while let Some((number, text)) = lines.next()? {
            let peek = LineHeader::of(number, text?)?;
            kinds.insert(peek.kind);
            let conversation = match peek.kind {
                RecordKind::Conversation => Some(peek.id()?.into_owned()),
                RecordKind::Ticket | RecordKind::Message | RecordKind::Comment => peek.conversation(),
                _ => None,
            };
            if let Some(id) = conversation.filter(|id| noted.insert(self.hashes.0.hash_one(id))) {
                conversations.push(id);
            }
            if matches!(peek.kind, RecordKind::Ticket | RecordKind::Message) && self.existing_kinds.contains(&peek.kind) {
                former.entry(peek.kind).or_default().push(peek.id()?.into_owned());
            }
            if number % BATCH_LINES as u64 == 0 && self.note_conversations(&mut conversations, &mut former).is_err() {
                return Ok(());
            }
        }
        // An error means that the receiver was dropped. The task that writes to the database reports why.
        let _ = self.note_conversations(&mut conversations, &mut former).and_then(|()| self.send(ImportStep::LockAffectedRows(kinds)));
        Ok(())
    }

    fn note_conversations(
        &self,
        conversations: &mut Vec<String>,
        former: &mut BTreeMap<RecordKind, Vec<String>>,
    ) -> Result<(), ReceiverDropped> {
        self.send(ImportStep::NoteConversations(std::mem::take(conversations)))?;
        std::mem::take(former).into_iter().try_for_each(|(kind, ids)| self.send(ImportStep::NoteFormerConversations(kind, ids)))
    }

    /// Runs the pass that reads the field definitions.
    fn define(&mut self, spool: &RereadableInput) -> Result<FieldDefinitions, ImportError> {
        let mut batch = Batch::default();
        let mut lines = spool.lines();
        while let Some((number, text)) = lines.next()? {
            // A line that cannot be read is skipped here: the pass over all records reports it.
            if let Ok(peek) = text.and_then(|text| LineHeader::of(number, text)) {
                let kept = match peek.kind {
                    RecordKind::TicketField => self.checked(spool, &peek).map(|record| batch.ticket_fields.push(Line { number, record })),
                    RecordKind::ContactField => self.checked(spool, &peek).map(|record| batch.contact_fields.push(Line { number, record })),
                    _ => Ok(()),
                };
                self.keep_faults(kept)?;
            }
            if number % 1024 == 0 {
                self.report(spool, lines.read());
            }
        }
        self.passes += 1;
        let added = self.definitions.add(&batch);
        self.keep_faults(added)?;
        Ok(FieldDefinitions(batch))
    }

    /// Runs the pass that collects the ids of the records that the import may replace. The stored records with these ids must release their
    /// unique values, such as e-mail addresses, for the duration of the import.
    fn collect_replaced_ids(&mut self, spool: &RereadableInput) -> Result<(), ImportError> {
        let mut replaced: BTreeMap<RecordKind, Vec<String>> = BTreeMap::new();
        let mut lines = spool.lines();
        while let Some((number, text)) = lines.next()? {
            let peek = LineHeader::of(number, text?)?;
            if self.existing_kinds.contains(&peek.kind) && replaces(peek.kind) {
                let ids = replaced.entry(peek.kind).or_default();
                ids.push(peek.id()?.into_owned());
                if ids.len() == BATCH_LINES && self.send(ImportStep::ReleaseUniqueValues(peek.kind, std::mem::take(ids))).is_err() {
                    return Ok(());
                }
            }
            if number % 1024 == 0 {
                self.report(spool, lines.read());
            }
        }
        // An error means that the receiver was dropped. The task that writes to the database reports why.
        let _ = replaced.into_iter().try_for_each(|(kind, ids)| self.send(ImportStep::ReleaseUniqueValues(kind, ids)));
        Ok(())
    }

    /// Runs the pass that reads all records except the field definitions.
    fn read_records(&mut self, spool: &RereadableInput) -> Result<(), ImportError> {
        let mut batch = Box::<Batch>::default();
        let (mut pending, mut bytes) = (0, 0);
        let mut lines = spool.lines();
        while let Some((number, text)) = lines.next()? {
            bytes += text.as_ref().map_or(0, |text| text.len());
            pending += 1;
            let taken = text.and_then(|text| LineHeader::of(number, text)).and_then(|peek| self.take(spool, &peek, &mut batch));
            self.keep_faults(taken)?;
            if pending == BATCH_LINES || bytes >= BATCH_BYTES {
                (pending, bytes) = (0, 0);
                if self.send(ImportStep::Write(std::mem::take(&mut batch))).is_err() {
                    return Ok(());
                }
                self.report(spool, lines.read());
            }
        }
        if lines.read() != spool.bytes() {
            return Err(ImportError::Changed { before: spool.bytes(), after: lines.read() });
        }
        let _ = self.send(ImportStep::Write(batch));
        self.report(spool, lines.read());
        self.passes += 1;
        Ok(())
    }

    fn take(&mut self, spool: &RereadableInput, peek: &LineHeader<'_>, batch: &mut Batch) -> Result<(), ImportError> {
        let number = peek.line;
        match peek.kind {
            RecordKind::ContactField | RecordKind::TicketField => {}
            RecordKind::Role => batch.roles.push(Line { number, record: self.checked(spool, peek)? }),
            RecordKind::User => batch.users.push(Line { number, record: self.checked(spool, peek)? }),
            RecordKind::Team => batch.teams.push(Line { number, record: self.checked(spool, peek)? }),
            RecordKind::Account => batch.accounts.push(Line { number, record: self.checked(spool, peek)? }),
            RecordKind::Template => batch.templates.push(Line { number, record: self.checked(spool, peek)? }),
            RecordKind::Label => batch.labels.push(Line { number, record: self.checked(spool, peek)? }),
            RecordKind::Contact => batch.contacts.push(Line { number, record: self.checked(spool, peek)? }),
            RecordKind::Conversation => batch.conversations.push(Line { number, record: self.checked(spool, peek)? }),
            RecordKind::Message => batch.messages.push(Line { number, record: self.checked(spool, peek)? }),
            RecordKind::Comment => batch.comments.push(Line { number, record: self.checked(spool, peek)? }),
            RecordKind::Ticket => {
                let mut ticket: Ticket = self.checked(spool, peek)?;
                let values = self.definitions.ticket_values(&mut ticket).map_err(|wrong| wrong.on(peek))?;
                batch.tickets.push(Line { number, record: ImportedTicket { ticket, values } });
            }
        }
        Ok(())
    }

    /// Parses and validates the record of a line. Refuses an id that an earlier line of the input has.
    fn checked<T: DeserializeOwned + Check>(&mut self, spool: &RereadableInput, peek: &LineHeader<'_>) -> Result<T, ImportError> {
        let mut record: T = peek.record()?;
        record.check(&self.definitions).map_err(|wrong| wrong.on(peek))?;
        if !peek.as_stored {
            record.follow_later_rules().map_err(|RuleViolation { place, reason }| InvalidProperty::new(place, reason).on(peek))?;
        }
        let key = (peek.kind, record.id());
        let hash = (u128::from(self.hashes.0.hash_one(key)) << 64) | u128::from(self.hashes.1.hash_one(key));
        if !self.seen.insert(hash) {
            let id = record.id();
            let first = first_line_of(spool, peek.kind, id)?;
            return Err(ImportError::line(peek.line, format!("{}.id", peek.kind.name()), format!("`{id}` stands on line {first} already")));
        }
        *self.counts.entry(peek.kind).or_default() += 1;
        Ok(record)
    }

    fn send(&self, step: ImportStep) -> Result<(), ReceiverDropped> {
        self.out.as_ref().map_or(Ok(()), |out| out.blocking_send(step).map_err(|_| ReceiverDropped))
    }

    fn report(&self, spool: &RereadableInput, done: u64) {
        if let Some(progress) = &self.progress {
            progress(spool.bytes() * self.passes + done, spool.bytes() * PASSES);
        }
    }
}

/// Returns the number of the first line that contains the record with this kind and id.
fn first_line_of(spool: &RereadableInput, kind: RecordKind, id: &str) -> Result<u64, ImportError> {
    let mut lines = spool.lines();
    while let Some((number, text)) = lines.next()? {
        // Skips lines that cannot be parsed: an earlier line may have a fault of its own, which is reported separately.
        if text
            .and_then(|text| LineHeader::of(number, text))
            .is_ok_and(|peek| peek.kind == kind && peek.id().is_ok_and(|found| found == id))
        {
            return Ok(number);
        }
    }
    Ok(0)
}

/// Returns whether records of this kind have values that are unique in a store. An existing record must release such values before it is
/// replaced: an import may, for example, exchange the e-mail addresses of two contacts.
fn replaces(kind: RecordKind) -> bool {
    matches!(kind, RecordKind::User | RecordKind::Contact | RecordKind::Conversation | RecordKind::Ticket | RecordKind::Message)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::{
        domain::clock::ClocksAndIds,
        service::import::{EXAMPLE, Options, run},
        store::fixture::Fixture,
    };

    #[tokio::test]
    async fn a_file_that_changes_while_it_is_read_is_refused() {
        let fixture = Fixture::new().await;
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(EXAMPLE.as_bytes()).unwrap();
        let spool = RereadableInput::open(file.path()).unwrap();
        file.write_all(b"\n").unwrap();
        let before = EXAMPLE.len() as u64;
        let refused = run(&fixture.db, &ClocksAndIds::real(), &fixture.store, spool, Options::default()).await;
        assert!(matches!(refused, Err(ImportError::Changed { before: got, after }) if got == before && after == before + 1), "{refused:?}");
        assert!(fixture.db.users(&fixture.store, None).await.unwrap().is_empty());
    }
}

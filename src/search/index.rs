//! The inverted index on disk (Tantivy): its schema, its documents and its commits.
//!
//! Documents, and so the posting lists, are sorted by [`DocumentSortKey`]: the shortest text first and, at equal length, the newest first.
//! For each frequency (number of occurrences in a record) above one, a term has a further posting list of the records that contain it
//! exactly that often. Of records with the same frequency of a term, the shortest scores best. So each of these lists begins with the
//! records that score best, and `searcher` can stop early.
//!
//! Called by `index_build`, `search_service`, `overlay` and `searcher`. Guarantees: Documents stay sorted, even after merges. A commit
//! stores, together with its documents, a position in the change log (the database's log of changed records): the documents include all
//! changes up to that position. After a crash, the index continues from the position in the last commit. An index is not opened if it is
//! damaged, or if it is of another database or another version of the text analysis.

use std::{fmt::Write as _, path::Path};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tantivy::{
    Index as Files, IndexReader, IndexSettings, IndexSortByField, IndexWriter, Order, ReloadPolicy, TantivyDocument, TantivyError, Term,
    merge_policy::NoMergePolicy,
    schema::{Field, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions},
    tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer},
};

use super::{
    analysis::{self, BREAK},
    fast_fields::{IdFields, STANDING},
    record_terms::Terms,
    score::{self, MAX_TERM_FREQUENCY},
};
use crate::{
    domain::{
        ids::StoreId,
        search::{Searchable, SearchableKind},
    },
    store::change_log::reader::LogPosition,
};

/// The memory budget of the index writer in bytes: `BUILDING` while the index is built, `WRITER_MEMORY_AFTER_BUILD` afterwards.
const BUILDING: usize = 60_000_000;
const WRITER_MEMORY_AFTER_BUILD: usize = 15_000_000;

const WRITTEN: &str = "counterpart";
/// Each term of the index begins with the id of its store. This character separates the id from the rest of the term. No id contains this
/// character.
const END_OF_STORE: char = '\0';
/// A term that every record of a store has. The number of documents with this term is the number of the store's records.
pub const ALL_RECORDS_TERM: &str = "\u{3}";
/// `OFTEN` is the first character of a frequency term (see [`frequency_term`]). Within a frequency term, `TIMES` separates the term of the
/// text from the frequency. No term of a text contains either character.
const OFTEN: char = '\u{5}';
const TIMES: char = '\0';
/// Separators in the text that [`join_terms`] returns: `PLACE` follows the position of a term, `END` follows the term.
const PLACE: char = '\u{1e}';
const END: char = '\u{1f}';

/// The fields of the index. The field `messages` contains the text of a message, and the field `contacts` that of a contact.
#[derive(Clone, Copy, Debug)]
pub struct IndexFields {
    messages: Field,
    contacts: Field,
    /// The [`RecordKey`], by which the index finds the document of a record that is deleted or replaced.
    key: Field,
    standing: Field,
    id: IdFields,
}

impl IndexFields {
    fn schema() -> (Schema, Self) {
        let mut schema = Schema::builder();
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(WRITTEN)
            .set_fieldnorms(false)
            .set_index_option(IndexRecordOption::WithFreqsAndPositions);
        let text = TextOptions::default().set_indexing_options(indexing);
        let fields = Self {
            messages: schema.add_text_field("messages", text.clone()),
            contacts: schema.add_text_field("contacts", text),
            key: schema.add_u64_field("key", NumericOptions::default().set_indexed()),
            standing: schema.add_u64_field(STANDING, NumericOptions::default().set_fast()),
            id: IdFields::add(&mut schema),
        };
        (schema.build(), fields)
    }

    pub fn text(&self, noun: SearchableKind) -> Field {
        match noun {
            SearchableKind::Message => self.messages,
            SearchableKind::Contact => self.contacts,
        }
    }

    pub fn key(&self, key: RecordKey) -> Term {
        Term::from_field_u64(self.key, key.0)
    }
}

/// Identifies a record: a hash of store, record type and id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordKey(u64);

impl RecordKey {
    pub fn of(store: &StoreId, noun: SearchableKind, id: &str) -> Self {
        let mut digest = Sha256::new();
        for part in [store.as_str(), if noun == SearchableKind::Message { "message" } else { "contact" }, id] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        let digest = digest.finalize();
        Self(u64::from_be_bytes(std::array::from_fn(|i| digest[i])))
    }
}

/// Returns the prefix of every term of a store.
pub fn prefix(store: &StoreId) -> String {
    format!("{store}{END_OF_STORE}")
}

/// Returns a frequency term: the term that a record has if it contains `term` exactly `times` times. All frequencies from
/// [`MAX_TERM_FREQUENCY`] on share one frequency term.
fn frequency_term(term: &str, times: u32) -> String {
    format!("{OFTEN}{term}{TIMES}{}", char::from_u32(times.min(MAX_TERM_FREQUENCY)).unwrap_or(TIMES))
}

/// Returns the prefix with which frequency terms (see [`frequency_term`]) are looked up: if `whole`, those of `term`; otherwise, those of
/// all terms that begin with `term`.
pub fn frequency_prefix(term: &str, whole: bool) -> String {
    if whole { format!("{OFTEN}{term}{TIMES}") } else { format!("{OFTEN}{term}") }
}

/// Returns the frequency that a frequency term (see [`frequency_term`]) stands for: its last byte.
pub fn times(often: &[u8]) -> u32 {
    often.last().copied().unwrap_or(0).into()
}

/// The sort key of documents: the length of the text (a length norm, see [`score::length`]), then the time of the record. Shorter texts
/// come first and, at equal length, newer records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DocumentSortKey(pub u64);

impl DocumentSortKey {
    const BITS: u32 = 56;
    const MIDDLE: i64 = 1 << (Self::BITS - 1);

    pub fn of(length: u8, at: i64) -> Self {
        let until = Self::MIDDLE - at.clamp(1 - Self::MIDDLE, Self::MIDDLE);
        Self(u64::from(length) << Self::BITS | until.unsigned_abs())
    }

    /// Returns the lowest sort key that a document longer than `length` can have. `None` if `length` is 255, the greatest length norm.
    pub fn longer(length: u8) -> Option<Self> {
        Some(Self(u64::from(length.checked_add(1)?) << Self::BITS))
    }

    pub fn length(self) -> u8 {
        u8::try_from(self.0 >> Self::BITS).unwrap_or(u8::MAX)
    }

    pub fn at(self) -> i64 {
        Self::MIDDLE - i64::try_from(self.0 & (u64::MAX >> (u64::BITS - Self::BITS))).unwrap_or(0)
    }
}

/// Joins the texts of a record to one text, separated by [`BREAK`].
pub fn text(texts: &[String]) -> String {
    let mut all = String::with_capacity(texts.iter().map(|text| text.len() + 1).sum());
    for (i, text) in texts.iter().enumerate() {
        if i > 0 {
            all.push(BREAK);
        }
        all.push_str(text);
    }
    all
}

/// Metadata of a commit: the database and the analysis version of the index, and its position in the change log.
#[derive(Debug, Serialize, Deserialize)]
struct CommitPayload {
    database: String,
    analysis: u32,
    /// `mark` is its name in existing indexes.
    #[serde(rename = "mark")]
    log_position: LogPosition,
}

/// An open index.
pub struct Index {
    files: Files,
    pub reader: IndexReader,
    writer: IndexWriter,
    pub fields: IndexFields,
    database: String,
}

impl Index {
    /// Opens the index in the folder; returns it with its position in the change log. `None` if there is no index, or if it is unfinished,
    /// damaged, of another version or of another database.
    pub fn open(folder: &Path, database: &str) -> Result<Option<(Self, LogPosition)>, TantivyError> {
        if !folder.is_dir() {
            return Ok(None);
        }
        let files = match Files::open_in_dir(folder) {
            Ok(files) => files,
            Err(error) => {
                tracing::warn!(%error, "the search index cannot be opened and is rebuilt");
                return Ok(None);
            }
        };
        let (schema, fields) = IndexFields::schema();
        let payload = files.load_metas()?.payload.and_then(|payload| serde_json::from_str::<CommitPayload>(&payload).ok());
        let ours =
            |payload: &CommitPayload| payload.database == database && payload.analysis == analysis::VERSION && files.schema() == schema;
        let Some(payload) = payload.filter(ours) else {
            tracing::info!("the search index is unfinished, of another version or of another database, and is rebuilt");
            return Ok(None);
        };
        let damaged = files.validate_checksum()?;
        if !damaged.is_empty() {
            tracing::warn!(?damaged, "the search index is damaged and is rebuilt");
            return Ok(None);
        }
        Ok(Some((Self::with(files, fields, database, WRITER_MEMORY_AFTER_BUILD)?, payload.log_position)))
    }

    /// Creates an empty index in the folder, whose former content is deleted. [`Self::open`] accepts the index only after its first commit.
    pub fn create(folder: &Path, database: &str) -> Result<Self, TantivyError> {
        if folder.exists() {
            std::fs::remove_dir_all(folder)?;
        }
        std::fs::create_dir_all(folder)?;
        let (schema, fields) = IndexFields::schema();
        let ranked = IndexSortByField { field: STANDING.to_owned(), order: Order::Asc };
        let settings = IndexSettings { sort_by_field: Some(ranked), ..IndexSettings::default() };
        let files = Files::builder().schema(schema).settings(settings).create_in_dir(folder)?;
        let index = Self::with(files, fields, database, BUILDING)?;
        // No merges during the build: `settle` merges all segments at the end of the build.
        index.writer.set_merge_policy(Box::new(NoMergePolicy));
        Ok(index)
    }

    fn with(files: Files, fields: IndexFields, database: &str, memory: usize) -> Result<Self, TantivyError> {
        files.tokenizers().register(WRITTEN, TextAnalyzer::from(JoinedTokenizer::default()));
        let reader = files.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let writer = files.writer_with_num_threads(1, memory)?;
        Ok(Self { files, reader, writer, fields, database: database.to_owned() })
    }

    /// Adds a record that is not in the index yet.
    pub fn add(&self, record: &Searchable) -> Result<(), TantivyError> {
        self.add_with(record, &Terms::of(&text(&record.texts)))
    }

    /// Adds a record as [`Self::add`] does, for a caller that already has the terms of `record.texts`.
    pub fn add_with(&self, record: &Searchable, terms: &Terms) -> Result<(), TantivyError> {
        let mut document = TantivyDocument::new();
        document.add_text(self.fields.text(record.noun), join_terms(&record.store, terms));
        document.add_u64(self.fields.key, RecordKey::of(&record.store, record.noun, &record.id).0);
        document.add_u64(self.fields.standing, DocumentSortKey::of(score::length(terms.count()), record.at).0);
        self.fields.id.write(&mut document, &record.id);
        self.writer.add_document(document)?;
        Ok(())
    }

    pub fn remove(&self, key: RecordKey) {
        self.writer.delete_term(self.fields.key(key));
    }

    /// Commits all added and removed documents durably. `log_position` is the position in the change log up to which the index is complete.
    pub fn commit(&mut self, log_position: &LogPosition) -> Result<(), TantivyError> {
        let payload = CommitPayload { database: self.database.clone(), analysis: analysis::VERSION, log_position: log_position.clone() };
        let payload = serde_json::to_string(&payload).map_err(|error| TantivyError::InternalError(error.to_string()))?;
        let mut commit = self.writer.prepare_commit()?;
        commit.set_payload(&payload);
        commit.commit()?;
        self.reader.reload()
    }

    /// Ends the build: merges all segments into one, and then releases the memory of the build. With one segment, a search looks up each of
    /// its terms only once.
    pub fn settle(self) -> Result<Self, TantivyError> {
        let Self { files, reader, mut writer, fields, database } = self;
        drop(reader);
        let segments = files.searchable_segment_ids()?;
        if segments.len() > 1 {
            writer.merge(&segments).wait()?;
        }
        writer.wait_merging_threads()?;
        Self::with(files, fields, &database, WRITER_MEMORY_AFTER_BUILD)
    }
}

/// Tokenizer for Tantivy: splits the text that [`join_terms`] returns into the terms of a record.
#[derive(Clone, Default)]
struct JoinedTokenizer {
    token: Token,
}

struct JoinedTokenStream<'a> {
    token: &'a mut Token,
    store: usize,
    rest: &'a str,
}

/// Joins the terms of a record and their positions to one text for [`JoinedTokenizer`]. The text begins with the prefix of the store. A
/// position of 0, which very many terms have, is omitted.
fn join_terms(store: &StoreId, terms: &Terms) -> String {
    let mut text = prefix(store);
    let mut put = |place: u32, term: &str| {
        if place > 0 {
            _ = write!(text, "{place}");
        }
        text.push(PLACE);
        text.push_str(term);
        text.push(END);
    };
    put(0, ALL_RECORDS_TERM);
    for (term, places) in terms.each() {
        for place in places {
            put(*place, term);
        }
        if places.len() > 1 {
            put(0, &frequency_term(term, u32::try_from(places.len()).unwrap_or(MAX_TERM_FREQUENCY)));
        }
    }
    text
}

impl Tokenizer for JoinedTokenizer {
    type TokenStream<'a> = JoinedTokenStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> JoinedTokenStream<'a> {
        let store = text.find(END_OF_STORE).map_or(0, |at| at + END_OF_STORE.len_utf8());
        self.token.reset();
        self.token.text.push_str(&text[..store]);
        JoinedTokenStream { token: &mut self.token, store, rest: &text[store..] }
    }
}

impl TokenStream for JoinedTokenStream<'_> {
    fn advance(&mut self) -> bool {
        let Some((one, rest)) = self.rest.split_once(END) else { return false };
        let Some((place, term)) = one.split_once(PLACE) else { return false };
        self.rest = rest;
        self.token.text.truncate(self.store);
        self.token.text.push_str(term);
        // `join_terms` omits a position of 0.
        self.token.position = place.parse().unwrap_or(0);
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_sorted_by_length_then_newest_first() {
        for (length, at) in [(0, 0), (7, 1_767_225_600_000), (7, -1), (255, -62_135_596_800_000), (255, 253_402_300_799_999)] {
            let rank = DocumentSortKey::of(length, at);
            assert_eq!((rank.length(), rank.at()), (length, at));
            assert!(
                rank > DocumentSortKey::of(length, at + 1)
                    && DocumentSortKey::longer(length).is_none_or(|longer| longer > rank && longer.length() == length + 1)
            );
        }
        for extreme in [i64::MIN, i64::MAX] {
            assert_eq!(DocumentSortKey::of(3, extreme).length(), 3);
        }
    }

    #[test]
    fn an_uncommitted_document_is_lost() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("index");
        let record =
            |id: &str| Searchable { store: "s".into(), noun: SearchableKind::Message, id: id.into(), at: 0, texts: vec!["text".into()] };
        let index = Index::create(&folder, "d").unwrap();
        index.add(&record("a")).unwrap();
        drop(index);
        assert!(Index::open(&folder, "d").unwrap().is_none(), "an index that was not finished");
        let mut index = Index::create(&folder, "d").unwrap();
        index.add(&record("a")).unwrap();
        index.commit(&LogPosition::default()).unwrap();
        index.add(&record("b")).unwrap();
        drop(index);
        assert!(Index::open(&folder, "another").unwrap().is_none());
        let (index, log_position) = Index::open(&folder, "d").unwrap().unwrap();
        assert_eq!((index.reader.searcher().num_docs(), log_position), (1, LogPosition::default()));
    }
}

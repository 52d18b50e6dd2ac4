//! The index on disk: Tantivy's files, what a record becomes in them, and what a commit says of the database.
//!
//! Called by `build` and `follow`. Guarantees: a commit holds its documents together with the mark of the change log up to
//! which they are complete, so that a process that dies between two commits goes on from the former; an index that is
//! damaged, of another database or of another analysis is not opened.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tantivy::{
    Index as Files, IndexReader, IndexSettings, IndexSortByField, IndexWriter, Order, ReloadPolicy, TantivyDocument, TantivyError, Term,
    schema::{BytesOptions, Field, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions},
    tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer},
};

use super::analysis::{self, BREAK};
use crate::{
    domain::{
        ids::StoreId,
        search::{Noun, Searchable},
    },
    store::search::Mark,
};

/// Bytes that wait in memory to become a segment: while the index is built, and afterwards.
const BUILDING: usize = 60_000_000;
const FOLLOWING: usize = 15_000_000;

const ANALYSIS: &str = "counterpart";
/// Parts the store from what is indexed for it. No id contains it.
const END_OF_STORE: char = '\0';
/// A term of every record, by which the store's are counted.
pub const EVERY: &str = "\u{3}";

/// The columns of the index. A record has a text in the field of its noun alone.
#[derive(Clone, Copy, Debug)]
pub struct Fields {
    messages: Field,
    contacts: Field,
    /// A digest of store, noun and id: what a record is replaced by.
    key: Field,
    pub at: Field,
    pub id: Field,
}

pub const AT: &str = "at";
pub const ID: &str = "id";

impl Fields {
    fn schema() -> (Schema, Self) {
        let mut schema = Schema::builder();
        let indexing = TextFieldIndexing::default().set_tokenizer(ANALYSIS).set_index_option(IndexRecordOption::WithFreqsAndPositions);
        let text = TextOptions::default().set_indexing_options(indexing);
        let fields = Self {
            messages: schema.add_text_field("messages", text.clone()),
            contacts: schema.add_text_field("contacts", text),
            key: schema.add_u64_field("key", NumericOptions::default().set_indexed()),
            at: schema.add_i64_field(AT, NumericOptions::default().set_fast()),
            id: schema.add_bytes_field(ID, BytesOptions::default().set_fast()),
        };
        (schema.build(), fields)
    }

    pub fn text(&self, noun: Noun) -> Field {
        match noun {
            Noun::Message => self.messages,
            Noun::Contact => self.contacts,
        }
    }

    pub fn key(&self, key: Key) -> Term {
        Term::from_field_u64(self.key, key.0)
    }
}

/// Tells records apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(u64);

impl Key {
    pub fn of(store: &StoreId, noun: Noun, id: &str) -> Self {
        let mut digest = Sha256::new();
        for part in [store.as_str(), if noun == Noun::Message { "message" } else { "contact" }, id] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        let digest = digest.finalize();
        Self(u64::from_be_bytes(std::array::from_fn(|i| digest[i])))
    }
}

/// What stands before every term of a store.
pub fn prefix(store: &StoreId) -> String {
    format!("{store}{END_OF_STORE}")
}

/// An id as the index keeps it: a UUID in 16 bytes. Ties break by this form.
pub fn pack(id: &str) -> Vec<u8> {
    match uuid::Uuid::try_parse(id) {
        Ok(uuid) if uuid.hyphenated().to_string() == id => [&[0_u8][..], uuid.as_bytes()].concat(),
        _ => [&[1_u8][..], id.as_bytes()].concat(),
    }
}

/// The id again; what is no id any more is damage.
pub fn unpack(packed: &[u8]) -> Option<String> {
    match packed.split_first()? {
        (0, uuid) => Some(uuid::Uuid::from_slice(uuid).ok()?.hyphenated().to_string()),
        (_, text) => String::from_utf8(text.to_vec()).ok(),
    }
}

/// The texts of a record as one.
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

/// What the commit says of itself.
#[derive(Debug, Serialize, Deserialize)]
struct Payload {
    database: String,
    analysis: u32,
    mark: Mark,
}

/// An open index.
pub struct Index {
    files: Files,
    pub reader: IndexReader,
    writer: IndexWriter,
    pub fields: Fields,
    database: String,
}

impl Index {
    /// Opens a finished index of the database; `None` where there is none that can be gone on with.
    pub fn open(folder: &Path, database: &str) -> Result<Option<(Self, Mark)>, TantivyError> {
        if !folder.is_dir() {
            return Ok(None);
        }
        let files = match Files::open_in_dir(folder) {
            Ok(files) => files,
            Err(error) => {
                tracing::warn!(%error, "the search index cannot be opened and is built anew");
                return Ok(None);
            }
        };
        let (schema, fields) = Fields::schema();
        let payload = files.load_metas()?.payload.and_then(|payload| serde_json::from_str::<Payload>(&payload).ok());
        let Some(payload) = payload.filter(|payload| payload.database == database && payload.analysis == analysis::VERSION) else {
            tracing::info!("the search index is unfinished, of another version or of another database, and is built anew");
            return Ok(None);
        };
        let damaged = files.validate_checksum()?;
        if files.schema() != schema || !damaged.is_empty() {
            tracing::warn!(?damaged, "the search index is damaged and is built anew");
            return Ok(None);
        }
        Ok(Some((Self::with(files, fields, database, FOLLOWING)?, payload.mark)))
    }

    /// An empty index in a new folder. What it holds counts only with the first commit.
    pub fn create(folder: &Path, database: &str) -> Result<Self, TantivyError> {
        if folder.exists() {
            std::fs::remove_dir_all(folder)?;
        }
        std::fs::create_dir_all(folder)?;
        let (schema, fields) = Fields::schema();
        // The newest first, so that of hits with one score those that count come first.
        let newest = IndexSortByField { field: AT.to_owned(), order: Order::Desc };
        let settings = IndexSettings { sort_by_field: Some(newest), ..IndexSettings::default() };
        let files = Files::builder().schema(schema).settings(settings).create_in_dir(folder)?;
        Self::with(files, fields, database, BUILDING)
    }

    fn with(files: Files, fields: Fields, database: &str, memory: usize) -> Result<Self, TantivyError> {
        files.tokenizers().register(ANALYSIS, TextAnalyzer::from(Analysis::default()));
        let reader = files.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let writer = files.writer_with_num_threads(1, memory)?;
        Ok(Self { files, reader, writer, fields, database: database.to_owned() })
    }

    /// Adds a record that is not there.
    pub fn add(&self, record: &Searchable) -> Result<(), TantivyError> {
        let mut document = TantivyDocument::new();
        document.add_text(self.fields.text(record.noun), format!("{}{}", prefix(&record.store), text(&record.texts)));
        document.add_u64(self.fields.key, Key::of(&record.store, record.noun, &record.id).0);
        document.add_i64(self.fields.at, record.at);
        document.add_bytes(self.fields.id, &pack(&record.id));
        self.writer.add_document(document)?;
        Ok(())
    }

    pub fn remove(&self, key: Key) {
        self.writer.delete_term(self.fields.key(key));
    }

    /// Makes everything durable. The index is complete up to the mark.
    pub fn commit(&mut self, mark: &Mark) -> Result<(), TantivyError> {
        let payload = Payload { database: self.database.clone(), analysis: analysis::VERSION, mark: mark.clone() };
        let payload = serde_json::to_string(&payload).map_err(|error| TantivyError::InternalError(error.to_string()))?;
        let mut commit = self.writer.prepare_commit()?;
        commit.set_payload(&payload);
        commit.commit()?;
        self.reader.reload()
    }

    /// Ends the building: waits for the merges and gives the memory back.
    pub fn settle(self) -> Result<Self, TantivyError> {
        let Self { files, reader, writer, fields, database } = self;
        drop(reader);
        writer.wait_merging_threads()?;
        Self::with(files, fields, &database, FOLLOWING)
    }
}

/// [`analysis::analyse`] as Tantivy takes it: of a text behind its store.
#[derive(Clone, Default)]
struct Analysis {
    terms: Terms,
}

#[derive(Clone, Default)]
struct Terms {
    text: String,
    /// The end of each in `text`, and its place.
    ends: Vec<(usize, u32)>,
    next: usize,
    begin: usize,
    prefix: usize,
    token: Token,
}

impl Tokenizer for Analysis {
    type TokenStream<'a> = &'a mut Terms;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> &'a mut Terms {
        let terms = &mut self.terms;
        terms.text.clear();
        terms.ends.clear();
        (terms.next, terms.begin) = (0, 0);
        terms.token.reset();
        let (store, text) = text.split_once(END_OF_STORE).unwrap_or(("", text));
        terms.token.text.push_str(store);
        terms.token.text.push(END_OF_STORE);
        terms.prefix = terms.token.text.len();
        terms.text.push_str(EVERY);
        terms.ends.push((terms.text.len(), 0));
        let (all, ends) = (&mut terms.text, &mut terms.ends);
        analysis::analyse(text, |term, place| {
            all.push_str(term);
            ends.push((all.len(), place));
        });
        terms
    }
}

impl TokenStream for &mut Terms {
    fn advance(&mut self) -> bool {
        let Some((end, place)) = self.ends.get(self.next).copied() else { return false };
        let begin = std::mem::replace(&mut self.begin, end);
        self.next += 1;
        let prefix = self.prefix;
        self.token.text.truncate(prefix);
        let Terms { token, text, .. } = &mut **self;
        token.text.push_str(&text[begin..end]);
        token.position = place as usize;
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back() {
        for id in ["018f2c7e-5a3b-7c1d-9e2f-0123456789ab", "018F2C7E-5A3B-7C1D-9E2F-0123456789AB", "m-1", "", "ไทย"] {
            assert_eq!(unpack(&pack(id)).as_deref(), Some(id));
        }
        assert_eq!(pack("018f2c7e-5a3b-7c1d-9e2f-0123456789ab").len(), 17);
    }
    #[test]
    fn what_was_not_committed_is_not_there() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("index");
        let record = |id: &str| Searchable { store: "s".into(), noun: Noun::Message, id: id.into(), at: 0, texts: vec!["text".into()] };
        let index = Index::create(&folder, "d").unwrap();
        index.add(&record("a")).unwrap();
        drop(index);
        assert!(Index::open(&folder, "d").unwrap().is_none(), "an index that was not finished");
        let mut index = Index::create(&folder, "d").unwrap();
        index.add(&record("a")).unwrap();
        index.commit(&Mark::default()).unwrap();
        index.add(&record("b")).unwrap();
        drop(index);
        assert!(Index::open(&folder, "another").unwrap().is_none());
        let (index, mark) = Index::open(&folder, "d").unwrap().unwrap();
        assert_eq!((index.reader.searcher().num_docs(), mark), (1, Mark::default()));
    }
}

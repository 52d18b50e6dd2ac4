//! Finding the best hits: across the segments of the index and what is not committed yet.
//!
//! Called by `follow`. Guarantees: a hit stands in an order that depends on the record and the walk's weights alone; the
//! work is bounded by the entries of the terms that are looked for, and most candidates cost no more than a look at a
//! number and a length; another store's records are not even candidates.

use std::{
    cmp::Ordering,
    collections::{HashMap, HashSet},
    sync::Arc,
};

use tantivy::{
    DocId, Searcher, SegmentReader, TERMINATED, TantivyError,
    columnar::{BytesColumn, ColumnValues},
    fieldnorm::FieldNormReader,
};

use super::{
    index::{AT, EVERY, Fields, ID, Key, pack, prefix, unpack},
    memory::Terms,
    postings::{Budget, Walk},
    query::{Condition, Query},
    score,
};
use crate::domain::{
    ids::StoreId,
    paging::{PageRequest, Rank},
    search::{Noun, Searchable},
};

/// In which order hits come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By relevance, the newest first of those alike.
    Relevance,
    Newest,
}

/// What is looked for.
#[derive(Clone, Debug)]
pub struct Search {
    pub store: StoreId,
    pub noun: Noun,
    pub text: String,
    pub order: Order,
    /// Unix milliseconds: at or after, and before.
    pub from: Option<i64>,
    pub before: Option<i64>,
    pub page: PageRequest,
}

/// A record that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    pub id: String,
    pub at: i64,
    pub score: u32,
}

/// A page of hits, with one more than asked for if there is one.
#[derive(Debug, Default)]
pub struct Found {
    pub hits: Vec<Hit>,
    pub weights: Vec<u8>,
    pub total: Option<u64>,
}

/// A record that is not in the index yet, or there in an older state.
#[derive(Debug)]
pub struct Fresh {
    pub record: Searchable,
    pub terms: Terms,
    /// It is no more: it has no terms, and hides what the index has of it.
    pub gone: bool,
}

/// What is searched at one moment.
pub struct View {
    pub searcher: Searcher,
    pub fields: Fields,
    /// By key, so that one record is there once.
    pub fresh: HashMap<Key, Fresh>,
    /// Documents of the index that `fresh` holds in a newer state: segment and document.
    pub stale: HashSet<(usize, DocId)>,
}

/// What one search may spend on words that begin alike.
const BUDGET: Budget = Budget { terms: 10_000, entries: 3_000_000 };
/// A text of 150 characters has fewer conditions, unless one character stands for several words.
const CONDITIONS: usize = 200;

/// Where a hit was found.
#[derive(Clone, Debug)]
enum Place {
    /// By segment, with the number of the id among the segment's, whose order is that of the ids.
    Index {
        segment: usize,
        ordinal: u64,
    },
    Fresh(Vec<u8>),
}

#[derive(Clone, Debug)]
struct Candidate {
    score: u32,
    at: i64,
    place: Place,
}

/// The best candidates so far, the best first.
struct Best<'v> {
    ids: &'v [BytesColumn],
    kept: Vec<Candidate>,
    most: usize,
    behind: Option<(u32, i64, Vec<u8>)>,
    total: u64,
}

impl View {
    pub fn search(&self, search: &Search) -> Result<Found, TantivyError> {
        let mut conditions = Query::of(&search.text).conditions;
        conditions.truncate(CONDITIONS);
        if conditions.is_empty() {
            return Ok(Found { total: search.page.count.then_some(0), ..Found::default() });
        }
        let (prefix, field) = (prefix(&search.store), self.fields.text(search.noun));
        let mut budget = BUDGET;
        let mut walks = Vec::with_capacity(self.searcher.segment_readers().len());
        for segment in self.searcher.segment_readers() {
            let index = segment.inverted_index(field)?;
            let walk = |condition| Walk::of(condition, &prefix, &index, segment.max_doc(), &mut budget);
            walks.push(conditions.iter().map(walk).collect::<Result<Vec<_>, _>>()?);
        }
        let rank = search.page.after.as_ref().and_then(|after| after.rank.as_ref());
        let weights = match (search.order, rank) {
            (Order::Newest, _) => vec![0; conditions.len()],
            (Order::Relevance, Some(Rank { weights, .. })) if weights.len() == conditions.len() => weights.clone(),
            (Order::Relevance, _) => self.weights(field, &prefix, &walks, conditions.len())?,
        };
        let ids = self.ids()?;
        let behind = search.page.after.as_ref().map(|after| (rank.map_or(0, |rank| rank.score), after.at, pack(&after.id)));
        let mut best = Best { ids: &ids, kept: Vec::new(), most: search.page.size as usize + 1, behind, total: 0 };
        for fresh in self.fresh.values() {
            fresh.offer(search, &conditions, &weights, &mut best)?;
        }
        for (number, (segment, walks)) in self.searcher.segment_readers().iter().zip(walks).enumerate() {
            Segment::open(self, number, segment, search)?.offer(walks, &weights, &mut best)?;
        }
        let total = search.page.count.then_some(best.total);
        Ok(Found { hits: best.hits()?, weights, total })
    }

    fn weights(
        &self,
        field: tantivy::schema::Field,
        prefix: &str,
        walks: &[Vec<Walk>],
        conditions: usize,
    ) -> Result<Vec<u8>, TantivyError> {
        let mut all = 0;
        for segment in self.searcher.segment_readers() {
            let every = segment.inverted_index(field)?.terms().get(format!("{prefix}{EVERY}"))?;
            all += every.map_or(0, |info| u64::from(info.doc_freq));
        }
        let having = |condition: usize| walks.iter().map(|walks| walks[condition].candidates()).sum();
        Ok((0..conditions).map(|condition| score::weight(having(condition), all)).collect())
    }

    fn ids(&self) -> Result<Vec<BytesColumn>, TantivyError> {
        let column =
            |segment: &SegmentReader| Ok(segment.fast_fields().bytes(ID)?.unwrap_or_else(|| BytesColumn::empty(segment.max_doc())));
        self.searcher.segment_readers().iter().map(column).collect()
    }

    /// The documents of a record in the index.
    pub fn documents(&self, key: Key) -> Result<Vec<(usize, DocId)>, TantivyError> {
        let term = self.fields.key(key);
        let mut found = Vec::new();
        for (number, segment) in self.searcher.segment_readers().iter().enumerate() {
            let postings = segment.inverted_index(term.field())?.read_postings(&term, tantivy::schema::IndexRecordOption::Basic)?;
            let Some(mut postings) = postings else { continue };
            while tantivy::DocSet::doc(&postings) != TERMINATED {
                found.push((number, tantivy::DocSet::doc(&postings)));
                tantivy::DocSet::advance(&mut postings);
            }
        }
        Ok(found)
    }
}

impl Fresh {
    fn offer(&self, search: &Search, conditions: &[Condition], weights: &[u8], best: &mut Best<'_>) -> Result<(), TantivyError> {
        let record = &self.record;
        if record.store != search.store || record.noun != search.noun || !search.covers(record.at) {
            return Ok(());
        }
        // The index counts the term that every record has as well.
        let length = score::length(self.terms.count() + 1);
        let mut score = 0;
        for (condition, weight) in conditions.iter().zip(weights) {
            let frequency = self.terms.frequency(condition);
            if frequency == 0 {
                return Ok(());
            }
            score += u32::from(*weight) * score::saturation(frequency, length);
        }
        best.offer(Candidate { score, at: record.at, place: Place::Fresh(pack(&record.id)) })
    }
}

impl Search {
    fn covers(&self, at: i64) -> bool {
        self.from.is_none_or(|from| at >= from) && self.before.is_none_or(|before| at < before)
    }
}

/// One segment while it is looked through.
struct Segment<'v> {
    view: &'v View,
    number: usize,
    reader: &'v SegmentReader,
    search: &'v Search,
    lengths: FieldNormReader,
    ats: Arc<dyn ColumnValues<i64>>,
}

impl<'v> Segment<'v> {
    fn open(view: &'v View, number: usize, reader: &'v SegmentReader, search: &'v Search) -> Result<Self, TantivyError> {
        let lengths = reader.get_fieldnorms_reader(view.fields.text(search.noun))?;
        let ats = reader.fast_fields().column_first_or_default(AT)?;
        Ok(Self { view, number, reader, search, lengths, ats })
    }

    fn offer(&self, walks: Vec<Walk>, weights: &[u8], best: &mut Best<'_>) -> Result<(), TantivyError> {
        let mut walks: Vec<(u32, Walk)> = weights.iter().map(|weight| u32::from(*weight)).zip(walks).collect();
        walks.sort_by_key(|(_, walk)| walk.candidates());
        let Some((lead, others)) = walks.split_first_mut() else { return Ok(()) };
        let rest: u32 = others.iter().map(|(weight, _)| weight).sum();
        // Without relevance a score is what it is.
        let (newest, alone, counted) = (self.search.order == Order::Newest, others.is_empty(), self.search.page.count);
        let mut document = lead.1.document();
        'candidates: loop {
            if !counted {
                document = lead.1.pass(|document, bound| {
                    let length = self.lengths.fieldnorm_id(document);
                    let most = lead.0 * score::saturation(bound, length) + rest * score::most(length);
                    !best.may_take(most, newest || (alone && bound == 1), || self.ats.get_val(document))
                });
            }
            if document == TERMINATED {
                return Ok(());
            }
            for (_, walk) in others.iter_mut() {
                let next = walk.seek(document);
                if next != document {
                    document = lead.1.seek(next.max(document + 1));
                    continue 'candidates;
                }
            }
            let (length, bound) = (self.lengths.fieldnorm_id(document), lead.1.bound());
            let mut bounds = others.iter().map(|(weight, walk)| (weight, walk.bound()));
            let (mut most, mut sure) = (lead.0 * score::saturation(bound, length), newest || bound == 1);
            bounds.by_ref().for_each(|(weight, bound)| {
                most += weight * score::saturation(bound, length);
                sure &= newest || bound == 1;
            });
            if counted || best.may_take(most, sure, || self.ats.get_val(document)) {
                self.weigh(lead, others, document, length, best)?;
            }
            document = lead.1.seek(document + 1);
        }
    }

    fn weigh(
        &self,
        lead: &mut (u32, Walk),
        others: &mut [(u32, Walk)],
        document: DocId,
        length: u8,
        best: &mut Best<'_>,
    ) -> Result<(), TantivyError> {
        let at = self.ats.get_val(document);
        if !self.search.covers(at) || self.reader.is_deleted(document) || self.view.stale.contains(&(self.number, document)) {
            return Ok(());
        }
        let mut score = 0;
        for (weight, walk) in std::iter::once(lead).chain(others) {
            let frequency = walk.frequency();
            if frequency == 0 {
                return Ok(());
            }
            score += *weight * score::saturation(frequency, length);
        }
        let ordinal = best.ids[self.number].ords().first(document).unwrap_or(0);
        best.offer(Candidate { score, at, place: Place::Index { segment: self.number, ordinal } })
    }
}

impl Best<'_> {
    /// Whether a candidate of at most this score might get onto the page. `sure`: if it is a hit, that is its score.
    fn may_take(&self, most: u32, sure: bool, at: impl Fn() -> i64) -> bool {
        if sure
            && let Some((score, behind, _)) = &self.behind
            && (most > *score || (most == *score && at() > *behind))
        {
            return false;
        }
        match self.kept.last() {
            Some(last) if self.kept.len() == self.most => most > last.score || (most == last.score && at() >= last.at),
            _ => true,
        }
    }

    fn offer(&mut self, candidate: Candidate) -> Result<(), TantivyError> {
        self.total += 1;
        if let Some((score, at, id)) = &self.behind {
            let order = (candidate.score, candidate.at).cmp(&(*score, *at));
            if order == Ordering::Greater || (order == Ordering::Equal && self.id(&candidate.place)? >= *id) {
                return Ok(());
            }
        }
        let (mut place, mut end) = (0, self.kept.len());
        while place < end {
            let middle = usize::midpoint(place, end);
            match self.compare(&candidate, &self.kept[middle])? {
                Ordering::Greater => end = middle,
                _ => place = middle + 1,
            }
        }
        if place < self.most {
            self.kept.insert(place, candidate);
            self.kept.truncate(self.most);
        }
        Ok(())
    }

    fn compare(&self, left: &Candidate, right: &Candidate) -> Result<Ordering, TantivyError> {
        let order = (left.score, left.at).cmp(&(right.score, right.at));
        if order != Ordering::Equal {
            return Ok(order);
        }
        match (&left.place, &right.place) {
            (Place::Index { segment, ordinal }, Place::Index { segment: other, ordinal: than }) if segment == other => {
                Ok(ordinal.cmp(than))
            }
            (left, right) => Ok(self.id(left)?.cmp(&self.id(right)?)),
        }
    }

    fn id(&self, place: &Place) -> Result<Vec<u8>, TantivyError> {
        match place {
            Place::Fresh(id) => Ok(id.clone()),
            Place::Index { segment, ordinal } => {
                let mut id = Vec::new();
                self.ids[*segment].ord_to_bytes(*ordinal, &mut id)?;
                Ok(id)
            }
        }
    }

    fn hits(self) -> Result<Vec<Hit>, TantivyError> {
        let hit = |candidate: &Candidate| {
            let id = unpack(&self.id(&candidate.place)?).ok_or_else(|| TantivyError::InternalError("an id cannot be read".to_owned()))?;
            Ok(Hit { id, at: candidate.at, score: candidate.score })
        };
        self.kept.iter().map(hit).collect()
    }
}

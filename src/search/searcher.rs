//! Query evaluation: the top hits across the index segments and the in-memory overlay, with early termination.
//!
//! The documents of a segment are sorted by text length and, at equal length, newest first. There are separate posting lists of the records
//! that contain a term twice, three times and so on (impact-ordered). A segment is searched in several passes. For each condition of the
//! search, a pass either fixes the frequency (or an upper bound of it), or assumes the highest frequency that occurs (see `ScanPass`). So
//! the maximum score of a candidate depends only on the length of its text. The texts get longer during a pass, and a longer text scores
//! lower, so the maximum score never rises. A pass ends as soon as the page is full and no further candidate can enter it. A later page
//! begins with a binary search for the place where the previous page ended. So a frequent term costs hardly more than a rare term. There is
//! no cache: the first search costs the same as later searches, except for disk reads.
//!
//! The cost still grows with the length of the posting lists in three cases. First, terms that seldom occur together, or seldom as the
//! searched phrase, have many candidates but few hits. Second, if many records repeat several terms, most hits score far below the maximum
//! of their pass, which assumes the highest frequency of some terms. So the pass ends late. Third, a count visits all hits; only revision A
//! of the API counts, and only contacts.
//!
//! Called by `search_service` and `overlay`. Guarantees: The sort key of a hit (score, instant, id) depends only on its record and on the
//! weights of the search. The pages equal those of an exhaustive evaluation, unless the search exceeds `BUDGET` or `CONDITIONS`. The
//! posting lists of a search contain no records of other stores.

use std::{
    cmp::{Ordering, Reverse},
    collections::{HashMap, HashSet},
    sync::Arc,
};

use tantivy::{DocId, Searcher, SegmentReader, TERMINATED, TantivyError, schema::Field};

use super::{
    fast_fields::{SegmentColumns, pack},
    index::{ALL_RECORDS_TERM, DocumentSortKey, IndexFields, RecordKey, prefix},
    postings::{ConditionIterators, PostingIterator, PostingOpener},
    query::{Condition, SearchQuery},
    record_terms::Terms,
    score::{self, MAX_TERM_FREQUENCY},
    top_hits::{Candidate, HitLocation, TopHits},
};
use crate::domain::{
    ids::StoreId,
    paging::{PageRequest, Rank},
    search::{Searchable, SearchableKind},
};

/// The sort order of hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortOrder {
    /// By descending score and, at equal score, newest first.
    Relevance,
    Newest,
}

/// A search request.
#[derive(Clone, Debug)]
pub struct Search {
    pub store: StoreId,
    pub noun: SearchableKind,
    pub text: String,
    pub order: SortOrder,
    /// Only records with an instant at or after `from` and before `before`, both in Unix milliseconds.
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

/// A page of hits, plus one further hit if there is a next page. The cursor of the next page contains the weights of the conditions
/// (`weights`). `total` is `None` unless the page request asks for a count.
#[derive(Debug, Default, PartialEq)]
pub struct HitPage {
    pub hits: Vec<Hit>,
    pub weights: Vec<u8>,
    pub total: Option<u64>,
}

/// A record of the overlay, the changes in memory that are not in the index yet. The index contains an older state of the record, or does
/// not contain it.
#[derive(Debug)]
pub struct OverlayRecord {
    pub record: Searchable,
    pub terms: Terms,
    /// The record was deleted: it has no terms, and hides its document in the index.
    pub gone: bool,
    /// The record is known to be absent from the index.
    pub new: bool,
}

/// A snapshot of the index with its overlay. A clone is cheap compared with a search.
#[derive(Clone)]
pub struct IndexSnapshot {
    searcher: Searcher,
    /// The columns of each segment.
    columns: Arc<[SegmentColumns]>,
    fields: IndexFields,
    /// The records of the overlay, by key.
    pub fresh: HashMap<RecordKey, Arc<OverlayRecord>>,
    /// The documents of the index that a record in `fresh` replaces: segment number and document id.
    pub stale: HashSet<(usize, DocId)>,
}

/// The limit of words that the prefixes of one search may expand to. Short prefixes are indexed as terms and are not expanded.
const BUDGET: usize = 10_000;
/// The limit of conditions of a search. The longest permitted search text has fewer, unless folding expands a character to several words.
const CONDITIONS: usize = 200;

/// The cost limits of a search.
#[derive(Clone, Copy)]
struct Limits {
    /// The limit of the sum of [`Condition::parts`] of all conditions.
    conditions: usize,
    /// The limit of records in the overlay.
    fresh: usize,
    /// The limit of words that the prefixes of the search expand to.
    words: usize,
    /// `candidates` is the limit of candidates of the rarest condition; each candidate costs a step in the posting lists of all other
    /// conditions. `lists` is the limit of the total number of candidates of all conditions.
    candidates: u64,
    lists: u64,
    /// Whether a search that exceeds a limit is evaluated up to the limit. If not, such a search is not evaluated at all.
    partly: bool,
}

/// Limits that keep the memory of a search to some megabytes.
const USUAL: Limits =
    Limits { conditions: CONDITIONS, fresh: usize::MAX, words: 1_000, candidates: u64::MAX, lists: u64::MAX, partly: false };
const WIDE: Limits =
    Limits { conditions: CONDITIONS, fresh: usize::MAX, words: BUDGET, candidates: u64::MAX, lists: u64::MAX, partly: true };
/// Limits that keep the duration of a search far below a millisecond, wherever in the posting lists its hits are. A search within these
/// limits may run on the thread of its caller.
const SMALL: Limits = Limits { conditions: 8, fresh: 500, words: 16, candidates: 250, lists: 50_000, partly: false };

impl IndexSnapshot {
    pub fn new(searcher: Searcher, fields: IndexFields) -> Result<Self, TantivyError> {
        Ok(Self { columns: Self::columns(&searcher)?, searcher, fields, fresh: HashMap::new(), stale: HashSet::new() })
    }

    /// Switches to a newer commit of the index. The caller must then update `fresh` and `stale`.
    pub fn look_at(&mut self, searcher: Searcher) -> Result<(), TantivyError> {
        self.columns = Self::columns(&searcher)?;
        self.searcher = searcher;
        Ok(())
    }

    fn columns(searcher: &Searcher) -> Result<Arc<[SegmentColumns]>, TantivyError> {
        searcher.segment_readers().iter().map(SegmentColumns::open).collect()
    }

    pub fn search(&self, search: &Search) -> Result<HitPage, TantivyError> {
        Ok(self.search_within(WIDE, search)?.unwrap_or_default())
    }

    /// Searches as [`Self::search`] does, if the search is within the limits of a cheap search; otherwise returns `None`.
    pub fn search_if_small(&self, search: &Search) -> Result<Option<HitPage>, TantivyError> {
        self.search_within(SMALL, search)
    }

    /// Searches as [`Self::search`] does, but returns `None` if a prefix expands to very many words, or if there are very many conditions.
    pub fn search_if_usual(&self, search: &Search) -> Result<Option<HitPage>, TantivyError> {
        self.search_within(USUAL, search)
    }

    fn search_within(&self, limits: Limits, search: &Search) -> Result<Option<HitPage>, TantivyError> {
        let mut conditions = SearchQuery::of(&search.text).conditions;
        let much = conditions.iter().map(Condition::parts).sum::<usize>() > limits.conditions || self.fresh.len() > limits.fresh;
        if much && !limits.partly {
            return Ok(None);
        }
        conditions.truncate(limits.conditions);
        if conditions.is_empty() {
            return Ok(Some(HitPage { total: search.page.count.then_some(0), ..HitPage::default() }));
        }
        let (prefix, field) = (prefix(&search.store), self.fields.text(search.noun));
        let mut budget = limits.words;
        let mut segments = Vec::with_capacity(self.searcher.segment_readers().len());
        for segment in self.searcher.segment_readers() {
            let index = segment.inverted_index(field)?;
            let mut opener = PostingOpener { index: &index, prefix: &prefix, budget };
            segments.push(conditions.iter().map(|condition| opener.part(condition)).collect::<Result<Vec<_>, _>>()?);
            budget = opener.budget;
        }
        let having = |condition: usize| segments.iter().map(|parts| parts[condition].walk.candidates()).sum();
        let candidates: Vec<u64> = (0..conditions.len()).map(having).collect();
        let (rarest, lists) = (candidates.iter().min().copied().unwrap_or(0), candidates.iter().sum::<u64>());
        if (budget == 0 || rarest > limits.candidates || lists > limits.lists) && !limits.partly {
            return Ok(None);
        }
        let rank = search.page.after.as_ref().and_then(|after| after.rank.as_ref());
        let weights = match (search.order, rank) {
            (SortOrder::Newest, _) => vec![0; conditions.len()],
            (SortOrder::Relevance, Some(Rank { weights, .. })) if weights.len() == conditions.len() => weights.clone(),
            (SortOrder::Relevance, _) => self.weights(field, &prefix, &candidates)?,
        };
        let behind = search.page.after.as_ref().map(|after| (rank.map_or(0, |rank| rank.score), after.at, pack(&after.id)));
        let mut best = TopHits { columns: &self.columns, kept: Vec::new(), most: search.page.size as usize + 1, behind, total: 0 };
        for fresh in self.fresh.values() {
            fresh.offer(search, &conditions, &weights, &mut best)?;
        }
        for (number, (segment, parts)) in self.searcher.segment_readers().iter().zip(segments).enumerate() {
            Segment { view: self, number, reader: segment, search }.offer(parts, &weights, &mut best)?;
        }
        let total = search.page.count.then_some(best.total);
        Ok(Some(HitPage { hits: best.hits()?, weights, total }))
    }

    fn weights(&self, field: Field, prefix: &str, candidates: &[u64]) -> Result<Vec<u8>, TantivyError> {
        let mut all = 0;
        for segment in self.searcher.segment_readers() {
            let every = segment.inverted_index(field)?.terms().get(format!("{prefix}{ALL_RECORDS_TERM}"))?;
            all += every.map_or(0, |info| u64::from(info.doc_freq));
        }
        Ok(candidates.iter().map(|having| score::weight(*having, all)).collect())
    }

    /// Finds the documents of a record in the index. Returns the segment number and the document id of each.
    pub fn documents(&self, key: RecordKey) -> Result<Vec<(usize, DocId)>, TantivyError> {
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

impl OverlayRecord {
    fn offer(&self, search: &Search, conditions: &[Condition], weights: &[u8], best: &mut TopHits<'_>) -> Result<(), TantivyError> {
        let record = &self.record;
        if record.store != search.store || record.noun != search.noun || !search.covers(record.at) {
            return Ok(());
        }
        let length = score::length(self.terms.count());
        let mut score = 0;
        for (condition, weight) in conditions.iter().zip(weights) {
            let frequency = self.terms.frequency(condition);
            if frequency == 0 {
                return Ok(());
            }
            score += u32::from(*weight) * score::saturation(frequency, length);
        }
        best.offer(Candidate { score, at: record.at, place: HitLocation::Overlay(pack(&record.id)) })
    }
}

impl Search {
    fn covers(&self, at: i64) -> bool {
        self.from.is_none_or(|from| at >= from) && self.before.is_none_or(|before| at < before)
    }
}

/// One segment during a search.
struct Segment<'v> {
    view: &'v IndexSnapshot,
    number: usize,
    reader: &'v SegmentReader,
    search: &'v Search,
}

/// A pass over a segment. Several passes of one search are disjoint: [`PostingIterator::frequency_bound`] of the conditions decides to
/// which pass a hit belongs.
#[derive(Clone, Copy)]
enum ScanPass {
    /// The only pass of a search: collects all hits.
    All,
    /// Collects the hits for which the bound of each condition is 1.
    Once,
    /// Contains the number of a condition, and a bound above 1. Collects the hits for which that condition has that bound and all earlier
    /// conditions have the bound 1.
    Repeated(usize, u32),
}

impl Segment<'_> {
    fn columns(&self) -> &SegmentColumns {
        &self.view.columns[self.number]
    }

    fn offer(&self, parts: Vec<ConditionIterators>, weights: &[u8], best: &mut TopHits<'_>) -> Result<(), TantivyError> {
        let mut parts: Vec<(u32, ConditionIterators)> = weights.iter().map(|weight| u32::from(*weight)).zip(parts).collect();
        parts.sort_by_key(|(_, part)| part.walk.candidates());
        if parts.first().is_none_or(|(_, part)| part.walk.candidates() == 0) {
            return Ok(());
        }
        // A count visits all hits, and `SortOrder::Newest` does not use scores. So both need only one pass.
        if self.search.page.count || self.search.order == SortOrder::Newest {
            return self.pass(ScanPass::All, &parts, best);
        }
        // The pass with the highest possible scores runs first, so that the other passes end early.
        let often = parts.iter().enumerate().flat_map(|(number, (_, part))| part.often.keys().map(move |times| (number, *times)));
        let mut passes: Vec<ScanPass> = often.map(|(number, times)| ScanPass::Repeated(number, times)).collect();
        passes.sort_by_key(|pass| Reverse(pass.ceilings(&parts).next()));
        for pass in passes.into_iter().chain([ScanPass::Once]) {
            self.pass(pass, &parts, best)?;
        }
        Ok(())
    }

    /// Runs one pass and offers its hits to `best`. Candidates are visited in the order of sort keys, so their maximum score never rises.
    fn pass(&self, pass: ScanPass, parts: &[(u32, ConditionIterators)], best: &mut TopHits<'_>) -> Result<(), TantivyError> {
        let ceilings: Vec<u32> = pass.ceilings(parts).collect();
        let sure = pass.sure(parts);
        let mut walks: Vec<(u32, PostingIterator)> = parts.iter().map(|(weight, part)| (*weight, part.walk.clone())).collect();
        let mut lead = match pass {
            ScanPass::Repeated(number, times) => parts[number].1.often.get(&times).cloned().unwrap_or(PostingIterator::Nowhere),
            ScanPass::All | ScanPass::Once => parts[0].1.walk.clone(),
        };
        let mut document = lead.document();
        'candidates: while document != TERMINATED {
            let rank = DocumentSortKey(self.columns().standings.get_val(document));
            match if self.search.page.count { Next::Look } else { self.next(rank, &ceilings, sure, best) } {
                Next::Look => {}
                Next::Skip(rank) => {
                    document = lead.seek(self.first(document + 1, rank));
                    continue;
                }
                Next::End => return Ok(()),
            }
            for (_, walk) in &mut walks {
                let next = walk.seek(document);
                if next != document {
                    document = lead.seek(next);
                    continue 'candidates;
                }
            }
            if pass.takes(&walks) {
                self.weigh(&mut walks, document, rank, best)?;
            }
            document = lead.seek(document + 1);
        }
        Ok(())
    }

    /// Decides how a pass continues at a candidate with this sort key.
    fn next(&self, rank: DocumentSortKey, ceilings: &[u32], sure: bool, best: &TopHits<'_>) -> Next {
        let (length, at) = (rank.length(), rank.at());
        let longer = DocumentSortKey::longer(length).map_or(Next::End, Next::Skip);
        if let Some(before) = self.search.before.filter(|before| at >= *before) {
            return Next::Skip(DocumentSortKey::of(length, before.saturating_sub(1)));
        }
        if self.search.from.is_some_and(|from| at < from) {
            return longer;
        }
        let most = ceilings[usize::from(length)];
        if let Some(last) = best.last_of_full() {
            match most.cmp(&last.score) {
                Ordering::Less => return Next::End,
                Ordering::Equal if at < last.at => return longer,
                _ => {}
            }
        }
        // Candidates that certainly belong to an earlier result page are skipped.
        match &best.behind {
            Some((score, _, _)) if sure && most > *score => {
                let from = (0..=u8::MAX).zip(ceilings).find(|(_, most)| *most <= score).map(|(length, _)| length);
                from.and_then(|length| DocumentSortKey::longer(length.checked_sub(1)?)).map_or(Next::End, Next::Skip)
            }
            Some((score, behind, _)) if sure && most == *score && at > *behind => Next::Skip(DocumentSortKey::of(length, *behind)),
            _ => Next::Look,
        }
    }

    /// Returns the first document, from `from` on, with this sort key or a higher one (binary search).
    fn first(&self, from: DocId, rank: DocumentSortKey) -> DocId {
        let ranks = &self.columns().standings;
        let (mut from, mut to) = (from, ranks.num_vals());
        while from < to {
            let middle = from + (to - from) / 2;
            if ranks.get_val(middle) < rank.0 { from = middle + 1 } else { to = middle }
        }
        from
    }

    fn weigh(
        &self,
        walks: &mut [(u32, PostingIterator)],
        document: DocId,
        rank: DocumentSortKey,
        best: &mut TopHits<'_>,
    ) -> Result<(), TantivyError> {
        let (length, at) = (rank.length(), rank.at());
        if !self.search.covers(at) || self.reader.is_deleted(document) || self.view.stale.contains(&(self.number, document)) {
            return Ok(());
        }
        // Positions are read only if the candidate could enter the page with its highest possible score.
        if let Some(last) = best.last_of_full().filter(|_| !self.search.page.count) {
            let most: u32 = walks.iter_mut().map(|(weight, walk)| *weight * score::saturation(walk.tight_frequency_bound(), length)).sum();
            if (most, at) < (last.score, last.at) {
                return Ok(());
            }
        }
        let mut score = 0;
        for (weight, walk) in walks {
            let frequency = walk.frequency();
            if frequency == 0 {
                return Ok(());
            }
            score += *weight * score::saturation(frequency, length);
        }
        best.offer(Candidate { score, at, place: HitLocation::Index { segment: self.number, document } })
    }
}

/// The next step of a pass.
enum Next {
    Look,
    /// Skip to the first document with this sort key or a higher one. That document comes after the current one.
    Skip(DocumentSortKey),
    End,
}

impl ScanPass {
    /// Returns the maximum score of a hit of the pass for each text length. It never rises with the length.
    fn ceilings(self, parts: &[(u32, ConditionIterators)]) -> impl Iterator<Item = u32> {
        let most = |(number, (weight, part)): (usize, &(u32, ConditionIterators))| {
            let times = match self {
                Self::All => MAX_TERM_FREQUENCY,
                Self::Once => 1,
                Self::Repeated(lead, _) if number < lead => 1,
                Self::Repeated(lead, times) if number == lead => times,
                Self::Repeated(..) => part.often.keys().next_back().copied().unwrap_or(1),
            };
            (*weight, times)
        };
        let most: Vec<(u32, u32)> = parts.iter().enumerate().map(most).collect();
        (0..=u8::MAX).map(move |length| most.iter().map(|(weight, times)| weight * score::saturation(*times, length)).sum())
    }

    /// Whether every hit of the pass has exactly the maximum score for its length.
    fn sure(self, parts: &[(u32, ConditionIterators)]) -> bool {
        match self {
            // With `SortOrder::Newest` all weights are 0, so every hit has the score 0, which is also the maximum.
            Self::All => parts.iter().all(|(weight, _)| *weight == 0),
            Self::Once => true,
            Self::Repeated(lead, _) => parts[lead].1.sure && parts[lead + 1..].iter().all(|(_, part)| part.often.is_empty()),
        }
    }

    /// Whether the current candidate belongs to this pass.
    fn takes(self, walks: &[(u32, PostingIterator)]) -> bool {
        match self {
            Self::All => true,
            Self::Once => walks.iter().all(|(_, walk)| walk.frequency_bound() == 1),
            Self::Repeated(lead, times) => {
                walks[lead].1.frequency_bound() == times && walks[..lead].iter().all(|(_, walk)| walk.frequency_bound() == 1)
            }
        }
    }
}

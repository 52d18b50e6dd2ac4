//! Posting-list iterators: the documents of an index segment that fulfil a condition of a search (two-phase iteration).
//!
//! An iterator moves cheaply from candidate to candidate. It verifies a candidate only on request, since that may require reading term
//! positions. Called by `searcher`.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, binary_heap::PeekMut},
};

use tantivy::{
    DocId, DocSet, InvertedIndexReader, TERMINATED,
    postings::{BlockSegmentPostings, Postings, SegmentPostings, TermInfo},
    schema::IndexRecordOption,
};

use super::{
    index::{frequency_prefix, times},
    query::Condition,
    score::MAX_TERM_FREQUENCY,
};

/// The posting-list iterators of one condition of a search in one segment of the index.
pub struct ConditionIterators {
    pub walk: PostingIterator,
    /// For each value of [`PostingIterator::frequency_bound`] above one: an iterator over the candidates with this bound. It may also visit
    /// candidates with a higher bound.
    pub often: BTreeMap<u32, PostingIterator>,
    /// Whether every candidate is certainly a hit, and [`PostingIterator::frequency_bound`] is its exact frequency.
    pub sure: bool,
}

/// The iterator of one condition over one segment. Its candidates come in ascending order of document id.
#[derive(Clone)]
pub enum PostingIterator {
    Nowhere,
    Term(Box<PostingBlocks>),
    Phrase(Box<Phrase>),
    All(Vec<PostingIterator>),
    Any(Box<Union>),
}

/// A posting list, read block by block.
#[derive(Clone)]
pub struct PostingBlocks {
    block: BlockSegmentPostings,
    at: usize,
}

#[derive(Clone)]
pub struct Phrase {
    /// The rarest term of the phrase: its documents are the candidates.
    lead: PostingBlocks,
    /// Terms that together cover all positions of the phrase, the rarest first. The number is the distance of the term to the last term of
    /// the phrase.
    parts: Vec<(u32, SegmentPostings)>,
    starts: Vec<u32>,
    others: Vec<u32>,
}

/// The union of several iterators.
#[derive(Clone)]
pub struct Union {
    walks: Vec<PostingIterator>,
    /// `here` are the iterators at the current candidate. `ahead` is the heap of the other iterators, by their next document.
    here: Vec<usize>,
    ahead: BinaryHeap<Reverse<(DocId, usize)>>,
    document: DocId,
}

/// Opens the posting-list iterators of one search in one segment.
pub struct PostingOpener<'i> {
    pub index: &'i InvertedIndexReader,
    /// The prefix of every term of the store.
    pub prefix: &'i str,
    /// How many more words the prefixes of the search may expand to.
    pub budget: usize,
}

/// The further posting lists of a term: a list for each frequency (number of occurrences in a document) above one.
type FrequencyLists = Vec<(u32, TermInfo)>;

impl PostingOpener<'_> {
    pub fn part(&mut self, condition: &Condition) -> tantivy::Result<ConditionIterators> {
        let (walk, lists) = self.open(condition)?;
        let mut often: BTreeMap<u32, Vec<PostingIterator>> = BTreeMap::new();
        for (times, info) in lists {
            often.entry(times).or_default().push(self.list(&info)?);
        }
        let often = often.into_iter().map(|(times, walks)| (times, Union::of(walks))).collect();
        Ok(ConditionIterators { walk, often, sure: matches!(condition, Condition::Term(_) | Condition::Beginning(_)) })
    }

    fn open(&mut self, condition: &Condition) -> tantivy::Result<(PostingIterator, FrequencyLists)> {
        Ok(match condition {
            Condition::Term(term) => match self.info(term)? {
                Some(info) => (self.list(&info)?, self.frequency_lists(term)?),
                None => (PostingIterator::Nowhere, vec![]),
            },
            Condition::Beginning(beginning) => {
                let (infos, last) = self.range(beginning, beginning, self.budget)?;
                self.budget = self.budget.saturating_sub(infos.len());
                let walks = infos.iter().map(|(_, info)| self.list(info)).collect::<tantivy::Result<_>>()?;
                // The frequency lists (see `FrequencyLists`) of the words that were found above. `last` is the last of these words.
                let often = self.range(&frequency_prefix(beginning, false), &frequency_prefix(&last, true), usize::MAX)?.0;
                (Union::of(walks), if infos.is_empty() { vec![] } else { often })
            }
            Condition::Phrase { covers, terms } => {
                // The distance of a term to the last term is added to its positions. All terms of a match then have equal positions.
                let last = terms.iter().map(|(offset, _)| *offset).max().unwrap_or(0);
                let mut infos = Vec::with_capacity(terms.len());
                for (offset, term) in terms {
                    let Some(info) = self.info(term)? else { return Ok((PostingIterator::Nowhere, vec![])) };
                    infos.push((last - *offset, term, info));
                }
                // The terms are sorted by rarity before `cover` selects some of them. A selection in the order of the text would seldom
                // contain the rarest term.
                infos.sort_by_key(|(_, _, info)| info.doc_freq);
                cover(&mut infos, last, *covers);
                let Some((_, term, rarest)) = infos.first() else { return Ok((PostingIterator::Nowhere, vec![])) };
                let (lead, often) = (self.blocks(rarest)?, self.frequency_lists(term)?);
                let option = IndexRecordOption::WithFreqsAndPositions;
                let part = |(offset, _, info)| Ok((offset, self.index.read_postings_from_terminfo(&info, option)?));
                let parts = infos.into_iter().map(part).collect::<tantivy::Result<_>>()?;
                (PostingIterator::Phrase(Box::new(Phrase { lead, parts, starts: vec![], others: vec![] })), often)
            }
            Condition::All(conditions) => {
                let mut opened = conditions.iter().map(|part| self.open(part)).collect::<tantivy::Result<Vec<_>>>()?;
                opened.sort_by_key(|(walk, _)| walk.candidates());
                let (walks, mut oftens): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
                // The frequency of the conjunction is at most that of the first condition, which has the fewest candidates.
                let often = oftens.drain(..).next().unwrap_or_default();
                (if walks.is_empty() { PostingIterator::Nowhere } else { PostingIterator::All(walks) }, often)
            }
            Condition::Any(conditions) => {
                let opened = conditions.iter().map(|way| self.open(way)).collect::<tantivy::Result<Vec<_>>>()?;
                let (walks, oftens): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
                (Union::of(walks), oftens.into_iter().flatten().collect())
            }
        })
    }

    fn info(&self, term: &str) -> tantivy::Result<Option<TermInfo>> {
        Ok(self.index.terms().get(format!("{}{term}", self.prefix))?)
    }

    fn blocks(&self, info: &TermInfo) -> tantivy::Result<PostingBlocks> {
        Ok(PostingBlocks { block: self.index.read_block_postings_from_terminfo(info, IndexRecordOption::WithFreqs)?, at: 0 })
    }

    fn list(&self, info: &TermInfo) -> tantivy::Result<PostingIterator> {
        Ok(PostingIterator::Term(Box::new(self.blocks(info)?)))
    }

    fn frequency_lists(&self, term: &str) -> tantivy::Result<FrequencyLists> {
        let often = frequency_prefix(term, true);
        Ok(self.range(&often, &often, usize::MAX)?.0)
    }

    /// Returns the posting lists of the terms between two prefixes: from the first term that begins with `from` to the last term that
    /// begins with `to`. Stops after `most` lists, but returns at least one if there is any. Also returns the last of the terms. The number
    /// with each list is its frequency, if it is a frequency list (see [`FrequencyLists`]). For other lists the number has no meaning.
    fn range(&self, from: &str, to: &str, most: usize) -> tantivy::Result<(FrequencyLists, String)> {
        let from = format!("{}{from}", self.prefix);
        let mut to = format!("{}{to}", self.prefix).into_bytes();
        // This byte is in no UTF-8 text and is higher than any other: the range contains every term that begins with the prefix `to`.
        to.push(0xff);
        let (mut infos, mut last) = (Vec::new(), Vec::new());
        let mut terms = self.index.terms().range().ge(&from).lt(&to).into_stream()?;
        while let Some((term, info)) = terms.next() {
            if infos.len() >= most.max(1) {
                tracing::debug!("a prefix with too many words is searched in part");
                break;
            }
            infos.push((times(term), info.clone()));
            last.clear();
            last.extend_from_slice(&term[self.prefix.len()..]);
        }
        Ok((infos, String::from_utf8_lossy(&last).into_owned()))
    }
}

impl PostingIterator {
    /// Returns an upper bound of the number of candidates.
    pub fn candidates(&self) -> u64 {
        match self {
            Self::Nowhere => 0,
            Self::Term(blocks) => blocks.block.doc_freq().into(),
            Self::Phrase(phrase) => phrase.lead.block.doc_freq().into(),
            Self::All(walks) => walks.first().map_or(0, Self::candidates),
            Self::Any(union) => union.walks.iter().map(Self::candidates).sum(),
        }
    }

    /// Returns the current candidate, or `TERMINATED` at the end.
    pub fn document(&self) -> DocId {
        match self {
            Self::Nowhere => TERMINATED,
            Self::Term(blocks) => blocks.document(),
            Self::Phrase(phrase) => phrase.lead.document(),
            Self::All(walks) => walks.first().map_or(TERMINATED, Self::document),
            Self::Any(union) => union.document,
        }
    }

    /// Moves to the first candidate at or after `target` and returns it. Does not move if the current candidate is at or after `target`.
    pub fn seek(&mut self, target: DocId) -> DocId {
        match self {
            Self::Nowhere => TERMINATED,
            Self::Term(blocks) => blocks.seek(target),
            Self::Phrase(phrase) => phrase.lead.seek(target),
            Self::All(walks) => walks.first_mut().map_or(TERMINATED, |walk| walk.seek(target)),
            Self::Any(union) => union.seek(target),
        }
    }

    /// Returns an upper bound of the frequency of the condition in the current candidate, at least 1. The value [`MAX_TERM_FREQUENCY`] also
    /// stands for all higher frequencies.
    pub fn frequency_bound(&self) -> u32 {
        let bound = match self {
            Self::Nowhere => 0,
            Self::Term(blocks) => blocks.frequency(),
            Self::Phrase(phrase) => phrase.lead.frequency(),
            Self::All(walks) => walks.first().map_or(0, Self::frequency_bound),
            Self::Any(union) => union.here.iter().map(|walk| union.walks[*walk].frequency_bound()).max().unwrap_or(0),
        };
        bound.min(MAX_TERM_FREQUENCY)
    }

    /// Returns an upper bound of the frequency, which is at most [`Self::frequency_bound`]. 0 means that the candidate is no hit. This call
    /// may cost more than [`Self::frequency_bound`]: for a phrase, it moves the posting lists of all terms to the candidate.
    pub fn tight_frequency_bound(&mut self) -> u32 {
        match self {
            Self::Phrase(phrase) => phrase.tight_frequency_bound(phrase.lead.document()).min(MAX_TERM_FREQUENCY),
            _ => self.frequency_bound(),
        }
    }

    /// Verifies the current candidate and returns the frequency of the condition in it; 0 if it is no hit.
    pub fn frequency(&mut self) -> u32 {
        let document = self.document();
        match self {
            Self::Nowhere | Self::Term(_) => self.frequency_bound(),
            Self::Phrase(phrase) => phrase.frequency(document),
            Self::All(walks) => {
                let mut least = u32::MAX;
                for walk in walks {
                    if walk.seek(document) != document {
                        return 0;
                    }
                    least = least.min(walk.frequency());
                }
                least
            }
            Self::Any(union) => {
                let walks = &mut union.walks;
                union.here.iter().map(|walk| walks[*walk].frequency()).max().unwrap_or(0)
            }
        }
    }
}

impl PostingBlocks {
    fn document(&self) -> DocId {
        self.block.docs().get(self.at).copied().unwrap_or(TERMINATED)
    }

    fn frequency(&self) -> u32 {
        self.block.freqs().get(self.at).copied().unwrap_or(0)
    }

    fn seek(&mut self, target: DocId) -> DocId {
        let ahead = self.block.docs().get(self.at..).unwrap_or_default();
        match ahead.last() {
            None => TERMINATED,
            Some(last) if *last >= target => {
                // The target is usually among the next documents, so a few are compared before the binary search.
                self.at += ahead
                    .iter()
                    .take(4)
                    .position(|document| *document >= target)
                    .unwrap_or_else(|| ahead.partition_point(|document| *document < target));
                self.document()
            }
            Some(_) => {
                self.at = self.block.seek(target);
                self.document()
            }
        }
    }
}

impl Union {
    fn of(mut walks: Vec<PostingIterator>) -> PostingIterator {
        if walks.len() < 2 {
            return walks.pop().unwrap_or(PostingIterator::Nowhere);
        }
        let here = (0..walks.len()).collect();
        let mut union = Self { walks, here, ahead: BinaryHeap::new(), document: 0 };
        union.settle(0);
        PostingIterator::Any(Box::new(union))
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if self.document < target {
            self.settle(target);
        }
        self.document
    }

    fn settle(&mut self, target: DocId) {
        for walk in self.here.drain(..) {
            let document = self.walks[walk].seek(target);
            self.ahead.push(Reverse((document, walk)));
        }
        while let Some(mut first) = self.ahead.peek_mut() {
            let Reverse((document, walk)) = *first;
            if document >= target {
                break;
            }
            *first = Reverse((self.walks[walk].seek(target), walk));
        }
        self.document = self.ahead.peek().map_or(TERMINATED, |Reverse((document, _))| *document);
        while let Some(first) = self.ahead.peek_mut()
            && first.0.0 == self.document
        {
            self.here.push(PeekMut::pop(first).0.1);
        }
    }
}

/// Removes redundant terms of a phrase: the remaining terms cover every position of the phrase. For example, of the bigrams of `abcd`, `ab`
/// and `cd` suffice. Rare terms are kept rather than common ones. `terms` are sorted by rarity. The number with a term is the distance from
/// its position to the position of the last term. `last` is the position of the last term. A term covers `covers` positions, the first of
/// which is its own.
fn cover<T>(terms: &mut Vec<(u32, &String, T)>, last: u32, covers: u32) {
    let places = |back: u32| (last - back) as usize..(last - back + covers) as usize;
    let mut times = vec![0_u32; (last + covers) as usize];
    terms.retain(|(back, _, _)| {
        let covered = &mut times[places(*back)];
        let adds = covered.contains(&0);
        if adds {
            covered.iter_mut().for_each(|times| *times += 1);
        }
        adds
    });
    // A term that was chosen later may have made an earlier term redundant.
    for at in (1..terms.len()).rev() {
        let covered = &mut times[places(terms[at].0)];
        if covered.iter().all(|times| *times > 1) {
            covered.iter_mut().for_each(|times| *times -= 1);
            terms.remove(at);
        }
    }
}

/// Moves to the first document at or after `target` and returns it. Tantivy's `seek` must not be called with a target before the current
/// document.
fn seek(postings: &mut SegmentPostings, target: DocId) -> DocId {
    if postings.doc() < target { postings.seek(target) } else { postings.doc() }
}

impl Phrase {
    /// Returns an upper bound of the phrase's frequency in the document: the frequency of the term that occurs least often there. 0 if a
    /// term is missing.
    fn tight_frequency_bound(&mut self, document: DocId) -> u32 {
        let mut least = u32::MAX;
        for (_, postings) in &mut self.parts {
            if seek(postings, document) != document {
                return 0;
            }
            least = least.min(postings.term_freq());
        }
        least
    }

    fn frequency(&mut self, document: DocId) -> u32 {
        if self.tight_frequency_bound(document) == 0 {
            return 0;
        }
        let Some(((offset, lead), rest)) = self.parts.split_first_mut() else { return 0 };
        lead.positions_with_offset(*offset, &mut self.starts);
        for (offset, postings) in rest {
            postings.positions_with_offset(*offset, &mut self.others);
            let others = &self.others;
            self.starts.retain(|start| others.binary_search(start).is_ok());
            if self.starts.is_empty() {
                return 0;
            }
        }
        u32::try_from(self.starts.len()).unwrap_or(u32::MAX)
    }
}

//! Where in a segment of the index a condition is fulfilled.
//!
//! A walk moves from candidate to candidate, which are cheap, and says only when asked whether one is a hit, which may mean
//! reading places: most candidates are passed over before, since they could not get onto the page.

use tantivy::{
    DocId, DocSet, InvertedIndexReader, TERMINATED,
    postings::{BlockSegmentPostings, Postings, SegmentPostings, TermInfo},
    schema::IndexRecordOption,
};

use super::query::Condition;

/// The walk of one condition through one segment. Its candidates ascend.
pub enum Walk {
    Nowhere,
    Term(Box<Blocks>),
    /// Documents and frequencies.
    List {
        found: Vec<(DocId, u8)>,
        at: usize,
    },
    Phrase(Phrase),
    All(Vec<Walk>),
    Any(Vec<Walk>),
}

/// The list of a term, a block at a time: most of its documents are looked at and passed over.
pub struct Blocks {
    block: BlockSegmentPostings,
    at: usize,
}

pub struct Phrase {
    /// The rarest of its terms: its documents are the candidates.
    lead: Box<Blocks>,
    /// All of them, that one first.
    parts: Vec<(u32, SegmentPostings)>,
    starts: Vec<u32>,
    others: Vec<u32>,
}

/// What looking through the terms that begin alike may still cost, in terms and in entries of their lists.
#[derive(Debug)]
pub struct Budget {
    pub terms: usize,
    pub entries: u64,
}

impl Walk {
    /// `prefix` stands before every term of the store.
    pub fn of(
        condition: &Condition,
        prefix: &str,
        index: &InvertedIndexReader,
        documents: DocId,
        budget: &mut Budget,
    ) -> tantivy::Result<Self> {
        Ok(match condition {
            Condition::Term(term) => match info(index, prefix, term)? {
                Some(info) => Self::Term(Box::new(Blocks::of(index, &info)?)),
                None => Self::Nowhere,
            },
            Condition::Beginning(beginning) => list(index, prefix, beginning, documents, budget)?,
            Condition::Phrase(terms) => {
                // Places are compared with what is left of the phrase added, so that they are the same where it stands.
                let last = terms.iter().map(|(offset, _)| *offset).max().unwrap_or(0);
                let mut infos = Vec::with_capacity(terms.len());
                for (offset, term) in terms {
                    let Some(info) = info(index, prefix, term)? else { return Ok(Self::Nowhere) };
                    infos.push((last - *offset, info));
                }
                infos.sort_by_key(|(_, info)| info.doc_freq);
                let Some((_, rarest)) = infos.first() else { return Ok(Self::Nowhere) };
                let lead = Box::new(Blocks::of(index, rarest)?);
                let option = IndexRecordOption::WithFreqsAndPositions;
                let part = |(offset, info)| Ok((offset, index.read_postings_from_terminfo(&info, option)?));
                let parts = infos.into_iter().map(part).collect::<tantivy::Result<_>>()?;
                Self::Phrase(Phrase { lead, parts, starts: vec![], others: vec![] })
            }
            Condition::All(conditions) => {
                let mut walks = Self::each(conditions, prefix, index, documents, budget)?;
                walks.sort_by_key(Self::candidates);
                if walks.is_empty() { Self::Nowhere } else { Self::All(walks) }
            }
            Condition::Any(conditions) => Self::Any(Self::each(conditions, prefix, index, documents, budget)?),
        })
    }

    fn each(
        conditions: &[Condition],
        prefix: &str,
        index: &InvertedIndexReader,
        documents: DocId,
        budget: &mut Budget,
    ) -> tantivy::Result<Vec<Self>> {
        conditions.iter().map(|condition| Self::of(condition, prefix, index, documents, budget)).collect()
    }

    /// How many candidates there are at most.
    pub fn candidates(&self) -> u64 {
        match self {
            Self::Nowhere => 0,
            Self::Term(blocks) => blocks.block.doc_freq().into(),
            Self::List { found, .. } => found.len() as u64,
            Self::Phrase(phrase) => phrase.lead.block.doc_freq().into(),
            Self::All(walks) => walks.first().map_or(0, Self::candidates),
            Self::Any(walks) => walks.iter().map(Self::candidates).sum(),
        }
    }

    /// The candidate that the walk stands on.
    pub fn document(&self) -> DocId {
        match self {
            Self::Nowhere => TERMINATED,
            Self::Term(blocks) => blocks.document(),
            Self::List { found, at } => found.get(*at).map_or(TERMINATED, |(document, _)| *document),
            Self::Phrase(phrase) => phrase.lead.document(),
            Self::All(walks) => walks.first().map_or(TERMINATED, Self::document),
            Self::Any(walks) => walks.iter().map(Self::document).min().unwrap_or(TERMINATED),
        }
    }

    /// Moves on to the first candidate from `target` on, unless it stands there already.
    pub fn seek(&mut self, target: DocId) -> DocId {
        match self {
            Self::Nowhere => TERMINATED,
            Self::Term(blocks) => blocks.seek(target),
            Self::List { found, at } => {
                // Near most of the time.
                let near = (*at + 8).min(found.len());
                *at += match found[*at..near].iter().position(|(document, _)| *document >= target) {
                    Some(steps) => steps,
                    None => near - *at + found[near..].partition_point(|(document, _)| *document < target),
                };
                self.document()
            }
            Self::Phrase(phrase) => phrase.lead.seek(target),
            Self::All(walks) => walks.first_mut().map_or(TERMINATED, |walk| walk.seek(target)),
            Self::Any(walks) => walks.iter_mut().map(|walk| walk.seek(target)).min().unwrap_or(TERMINATED),
        }
    }

    /// Moves on while the candidate, with what [`Walk::bound`] says of it, is hopeless.
    pub fn pass(&mut self, hopeless: impl Fn(DocId, u32) -> bool) -> DocId {
        match self {
            Self::Term(blocks) => blocks.pass(hopeless),
            Self::Phrase(phrase) => phrase.lead.pass(hopeless),
            _ => {
                let mut document = self.document();
                while document != TERMINATED && hopeless(document, self.bound()) {
                    document = self.seek(document + 1);
                }
                document
            }
        }
    }

    /// How often the condition is fulfilled at most in the candidate.
    pub fn bound(&self) -> u32 {
        match self {
            Self::Nowhere => 0,
            Self::Term(blocks) => blocks.frequency(),
            Self::List { found, at } => found.get(*at).map_or(0, |(_, frequency)| u32::from(*frequency)),
            Self::Phrase(phrase) => phrase.lead.frequency(),
            Self::All(walks) => walks.first().map_or(0, Self::bound),
            Self::Any(walks) => {
                let document = self.document();
                walks.iter().filter(|walk| walk.document() == document).map(Self::bound).max().unwrap_or(0)
            }
        }
    }

    /// How often it is: 0 where the candidate is no hit.
    pub fn frequency(&mut self) -> u32 {
        let document = self.document();
        match self {
            Self::Nowhere | Self::Term(_) | Self::List { .. } => self.bound(),
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
            Self::Any(walks) => walks.iter_mut().filter(|walk| walk.document() == document).map(Self::frequency).max().unwrap_or(0),
        }
    }
}

impl Blocks {
    fn of(index: &InvertedIndexReader, info: &TermInfo) -> tantivy::Result<Self> {
        Ok(Self { block: index.read_block_postings_from_terminfo(info, IndexRecordOption::WithFreqs)?, at: 0 })
    }

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
                // The next one most of the time.
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

    fn pass(&mut self, hopeless: impl Fn(DocId, u32) -> bool) -> DocId {
        loop {
            let (documents, frequencies) = (self.block.docs(), self.block.freqs());
            if documents.is_empty() {
                return TERMINATED;
            }
            let ahead = documents.iter().zip(frequencies).skip(self.at);
            if let Some(steps) = ahead.map(|(document, frequency)| hopeless(*document, *frequency)).position(|hopeless| !hopeless) {
                self.at += steps;
                return self.document();
            }
            self.block.advance();
            self.at = 0;
        }
    }
}

/// Tantivy's own must not be asked to go back.
fn seek(postings: &mut SegmentPostings, target: DocId) -> DocId {
    if postings.doc() < target { postings.seek(target) } else { postings.doc() }
}

impl Phrase {
    fn frequency(&mut self, document: DocId) -> u32 {
        let Some(((offset, lead), rest)) = self.parts.split_first_mut() else { return 0 };
        if seek(lead, document) != document || rest.iter_mut().any(|(_, postings)| seek(postings, document) != document) {
            return 0;
        }
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

fn info(index: &InvertedIndexReader, prefix: &str, term: &str) -> tantivy::Result<Option<TermInfo>> {
    Ok(index.terms().get(format!("{prefix}{term}"))?)
}

/// Every document with a term that begins so. The term itself comes first, whatever the budget.
fn list(index: &InvertedIndexReader, prefix: &str, beginning: &str, documents: DocId, budget: &mut Budget) -> tantivy::Result<Walk> {
    let from = format!("{prefix}{beginning}");
    let mut to = from.clone().into_bytes();
    // No text has this byte.
    to.push(0xff);
    let mut infos = Vec::new();
    let mut entries: u64 = 0;
    let mut terms = index.terms().range().ge(&from).lt(&to).into_stream()?;
    while let Some((_, info)) = terms.next() {
        let cost = u64::from(info.doc_freq);
        if !infos.is_empty() && (budget.terms == 0 || entries + cost > budget.entries) {
            tracing::debug!("a beginning of too many words is looked for in part");
            break;
        }
        budget.terms = budget.terms.saturating_sub(1);
        entries += cost;
        infos.push(info.clone());
    }
    budget.entries = budget.entries.saturating_sub(entries);
    let option = IndexRecordOption::WithFreqs;
    let read = |each: &mut dyn FnMut(DocId, u32)| -> tantivy::Result<()> {
        for info in &infos {
            let mut block = index.read_block_postings_from_terminfo(info, option)?;
            while !block.docs().is_empty() {
                block.docs().iter().zip(block.freqs()).for_each(|(document, frequency)| each(*document, *frequency));
                block.advance();
            }
        }
        Ok(())
    };
    match &infos[..] {
        [] => Ok(Walk::Nowhere),
        [one] => Ok(Walk::Term(Box::new(Blocks::of(index, one)?))),
        _ => {
            let found = if entries > u64::from(documents) / 16 {
                let mut counts = vec![0_u8; documents as usize];
                read(&mut |document, frequency| {
                    if let Some(count) = counts.get_mut(document as usize) {
                        *count = count.saturating_add(byte(frequency));
                    }
                })?;
                (0..).zip(counts).filter(|(_, count)| *count > 0).collect()
            } else {
                let mut found = Vec::with_capacity(usize::try_from(entries).unwrap_or(0));
                read(&mut |document, frequency| found.push((document, byte(frequency))))?;
                found.sort_unstable_by_key(|(document, _)| *document);
                found.dedup_by(|next, kept| {
                    let same = next.0 == kept.0;
                    if same {
                        kept.1 = kept.1.saturating_add(next.1);
                    }
                    same
                });
                found
            };
            Ok(Walk::List { found, at: 0 })
        }
    }
}

fn byte(frequency: u32) -> u8 {
    u8::try_from(frequency).unwrap_or(u8::MAX)
}

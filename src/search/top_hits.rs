//! Top-k collector: the best candidates of one result page so far, across all segments.
//!
//! Called by `searcher`. Guarantees: ids break ties of score and instant. While hits are collected, an id is read only for such a tie.

use std::cmp::Ordering;

use tantivy::{DocId, TantivyError};

use super::{
    fast_fields::{SegmentColumns, unpack},
    searcher::Hit,
};

/// The location of a hit.
#[derive(Clone, Debug)]
pub enum HitLocation {
    Index {
        segment: usize,
        document: DocId,
    },
    /// A hit in the overlay. Contains the packed id of the hit.
    Overlay(Vec<u8>),
}

#[derive(Clone, Debug)]
pub struct Candidate {
    pub score: u32,
    pub at: i64,
    pub place: HitLocation,
}

/// The best candidates so far, the best first.
pub struct TopHits<'v> {
    /// The columns of each segment.
    pub columns: &'v [SegmentColumns],
    pub kept: Vec<Candidate>,
    pub most: usize,
    /// The cursor of the page: score, instant and packed id of the last hit before the page.
    pub behind: Option<(u32, i64, Vec<u8>)>,
    /// The number of all candidates, including those before the page. It is complete only if the search asks for a count.
    pub total: u64,
}

impl TopHits<'_> {
    /// Returns the last candidate if the page is full: the threshold for further candidates.
    pub fn last_of_full(&self) -> Option<&Candidate> {
        self.kept.last().filter(|_| self.kept.len() == self.most)
    }

    pub fn offer(&mut self, candidate: Candidate) -> Result<(), TantivyError> {
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
        Ok(self.id(&left.place)?.cmp(&self.id(&right.place)?))
    }

    fn id(&self, place: &HitLocation) -> Result<Vec<u8>, TantivyError> {
        match place {
            HitLocation::Overlay(id) => Ok(id.clone()),
            HitLocation::Index { segment, document } => self.columns[*segment].id(*document),
        }
    }

    pub fn hits(self) -> Result<Vec<Hit>, TantivyError> {
        let hit = |candidate: &Candidate| {
            let id = unpack(&self.id(&candidate.place)?).ok_or_else(|| TantivyError::InternalError("an id cannot be read".to_owned()))?;
            Ok(Hit { id, at: candidate.at, score: candidate.score })
        };
        self.kept.iter().map(hit).collect()
    }
}

//! The terms of one record, in memory. The index document of the record is made from the terms. The conditions of a search can also be
//! evaluated on the terms, without an index: for records that the index does not contain yet, and to find which property of a contact
//! matches. This module does no I/O.

use std::ops::Range;

use super::{
    analysis::{self, SHORT},
    query::{Condition, SearchQuery},
};

/// The terms of a text with their positions. They are built often and queried seldom, so they are stored in three allocations, without an
/// allocation for each term.
#[derive(Debug)]
pub struct Terms {
    /// All terms in text order, concatenated.
    text: String,
    /// Each distinct term once, sorted.
    terms: Vec<Term>,
    places: Vec<u32>,
    count: u32,
}

/// The ranges of a term in the fields `text` and `places` of [`Terms`].
#[derive(Debug)]
struct Term {
    text: Range<usize>,
    places: Range<usize>,
}

impl Terms {
    pub fn of(text: &str) -> Self {
        let (mut all, mut found, mut count) = (String::with_capacity(text.len() * 4), Vec::with_capacity(text.len() / 2), 0);
        analysis::analyse(text, |term, place| {
            count += u32::from(!term.starts_with(SHORT));
            let from = all.len();
            all.push_str(term);
            found.push((from..all.len(), place));
        });
        let written = |range: &Range<usize>| &all.as_bytes()[range.clone()];
        // The sort is stable: positions of a term stay in order.
        found.sort_by(|(one, _), (other, _)| written(one).cmp(written(other)));
        let (mut terms, mut places) = (Vec::<Term>::with_capacity(found.len()), Vec::with_capacity(found.len()));
        for (text, place) in found {
            match terms.last_mut().filter(|last| written(&last.text) == written(&text)) {
                Some(last) => last.places.end += 1,
                None => terms.push(Term { text, places: places.len()..places.len() + 1 }),
            }
            places.push(place);
        }
        all.shrink_to_fit();
        terms.shrink_to_fit();
        Self { text: all, terms, places, count }
    }

    /// The number of terms, without the [`SHORT`] terms.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Each distinct term with its positions. The terms are sorted; the positions of a term are in text order.
    pub fn each(&self) -> impl Iterator<Item = (&str, &[u32])> {
        self.terms.iter().map(|term| (self.text(term), self.places(term)))
    }

    fn text(&self, term: &Term) -> &str {
        &self.text[term.text.clone()]
    }

    fn places(&self, term: &Term) -> &[u32] {
        &self.places[term.places.clone()]
    }

    fn at(&self, term: &str) -> &[u32] {
        self.terms.binary_search_by(|one| self.text(one).cmp(term)).map_or(&[], |at| self.places(&self.terms[at]))
    }

    /// Returns how often the text fulfils a condition.
    pub fn frequency(&self, condition: &Condition) -> u32 {
        match condition {
            Condition::Term(term) => count(self.at(term).len()),
            Condition::Beginning(beginning) => {
                let from = self.terms.partition_point(|term| self.text(term) < beginning.as_str());
                let begin_so = self.terms[from..].iter().take_while(|term| self.text(term).starts_with(beginning.as_str()));
                begin_so.map(|term| count(term.places.len())).max().unwrap_or(0)
            }
            Condition::Phrase { terms, .. } => {
                let Some(((first, lead), rest)) = terms.split_first() else { return 0 };
                let stands =
                    |start: &&u32| rest.iter().all(|(offset, term)| self.at(term).binary_search(&(*start + offset - first)).is_ok());
                count(self.at(lead).iter().filter(stands).count())
            }
            Condition::All(parts) => parts.iter().map(|part| self.frequency(part)).min().unwrap_or(0),
            Condition::Any(ways) => ways.iter().map(|way| self.frequency(way)).max().unwrap_or(0),
        }
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Returns the names (`T`) of the texts that fulfil at least one condition of the search.
pub fn matching<T, S: AsRef<str>>(search: &str, texts: impl IntoIterator<Item = (T, S)>) -> Vec<T> {
    let query = SearchQuery::of(search);
    let fulfils = |text: &str| {
        let terms = Terms::of(text);
        query.conditions.iter().any(|condition| terms.frequency(condition) > 0)
    };
    texts.into_iter().filter(|(_, text)| fulfils(text.as_ref())).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(query: &str, text: &str) -> bool {
        let terms = Terms::of(text);
        let conditions = SearchQuery::of(query).conditions;
        !conditions.is_empty() && conditions.iter().all(|condition| terms.frequency(condition) > 0)
    }

    #[test]
    fn a_phrase_matches_only_as_a_whole() {
        assert!(finds("号是多", "订单号是多少"));
        assert!(finds("订单号是多少", "请问订单号是多少"));
        assert!(!finds("订单多少", "订单号是多少"));
        assert!(!finds("订单号是", "订单 号是"));
        assert!(finds("号是 订单", "订单号是"));
    }

    #[test]
    fn the_matching_texts_are_returned() {
        let texts = [("name", "Mia Nguyễn"), ("phone", "+66812345678"), ("note", "likes tea")];
        assert_eq!(matching("nguyen 08123", texts), ["name", "phone"]);
        assert_eq!(matching("tea", texts), ["note"]);
    }
}

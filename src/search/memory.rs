//! A record's terms in memory: what the index makes its document from, how what it has not committed yet is found, and which
//! property of a contact fulfils a search. Pure.

use std::collections::BTreeMap;

use super::{
    analysis::{self, SHORT},
    query::{Condition, Query},
};

/// The terms of one text and their places.
#[derive(Debug, Default)]
pub struct Terms {
    places: BTreeMap<String, Vec<u32>>,
    count: u32,
}

impl Terms {
    pub fn of(text: &str) -> Self {
        let mut terms = Self::default();
        analysis::analyse(text, |term, place| {
            terms.count += u32::from(!term.starts_with(SHORT));
            match terms.places.get_mut(term) {
                Some(places) => places.push(place),
                None => _ = terms.places.insert(term.to_owned(), vec![place]),
            }
        });
        terms
    }

    /// How many there are, those of short beginnings not counted.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Each of them with its places, in their order.
    pub fn each(&self) -> impl Iterator<Item = (&str, &[u32])> {
        self.places.iter().map(|(term, places)| (term.as_str(), places.as_slice()))
    }

    fn at(&self, term: &str) -> &[u32] {
        self.places.get(term).map_or(&[], Vec::as_slice)
    }

    /// How often a condition is fulfilled.
    pub fn frequency(&self, condition: &Condition) -> u32 {
        match condition {
            Condition::Term(term) => count(self.at(term).len()),
            Condition::Beginning(beginning) => {
                let from = self.places.range(beginning.clone()..);
                from.take_while(|(term, _)| term.starts_with(beginning.as_str())).map(|(_, places)| count(places.len())).max().unwrap_or(0)
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

/// Those of the texts that fulfil some condition of the search.
pub fn matching<'a, T>(search: &str, texts: impl IntoIterator<Item = (T, &'a str)>) -> Vec<T> {
    let query = Query::of(search);
    let fulfils = |text: &str| {
        let terms = Terms::of(text);
        query.conditions.iter().any(|condition| terms.frequency(condition) > 0)
    };
    texts.into_iter().filter(|(_, text)| fulfils(text)).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(query: &str, text: &str) -> bool {
        let terms = Terms::of(text);
        let conditions = Query::of(query).conditions;
        !conditions.is_empty() && conditions.iter().all(|condition| terms.frequency(condition) > 0)
    }

    #[test]
    fn phrases_are_whole() {
        assert!(finds("号是多", "订单号是多少"));
        assert!(finds("订单号是多少", "请问订单号是多少"));
        assert!(!finds("订单多少", "订单号是多少"));
        assert!(!finds("订单号是", "订单 号是"));
        assert!(finds("号是 订单", "订单号是"));
    }

    #[test]
    fn which_text_matches_is_told() {
        let texts = [("name", "Mia Nguyễn"), ("phone", "+66812345678"), ("note", "likes tea")];
        assert_eq!(matching("nguyen 08123", texts), ["name", "phone"]);
        assert_eq!(matching("tea", texts), ["note"]);
    }
}

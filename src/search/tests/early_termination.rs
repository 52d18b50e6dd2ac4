//! Property test of early termination: paginated searches over generated records return the same hits as an exhaustive evaluation.

use proptest::prelude::*;

use super::*;
use crate::search::{fast_fields::pack, query::SearchQuery, score};

/// The vocabulary of texts and searches: words with common prefixes, texts without spaces that repeat bigrams, numbers within other
/// numbers.
const PIECES: [&str; 24] = [
    "order ",
    "order ",
    "orders ",
    "ordering ",
    "or ",
    "refund ",
    "reset ",
    "re ",
    "r",
    "订单号",
    "订单",
    "单订",
    "号",
    "สินค้า",
    "สินค้าสินค้า",
    "ค",
    "ชำรุด",
    "2024 ",
    "20245 ",
    "081-2345 ",
    "👍",
    "me@re.example ",
    "的",
    "的",
];

#[derive(Clone, Debug)]
enum Step {
    Put { id: u8, at: i64, pieces: Vec<usize>, again: usize },
    Remove(u8),
    Commit,
}

fn step() -> impl Strategy<Value = Step> {
    let put = (any::<u8>(), 0..6_i64, prop::collection::vec(0..PIECES.len(), 1..7), 1..4_usize);
    prop_oneof![
        60 => put.prop_map(|(id, at, pieces, again)| Step::Put { id, at, pieces, again }),
        4 => any::<u8>().prop_map(Step::Remove),
        5 => Just(Step::Commit),
    ]
}

fn said(pieces: &[usize]) -> String {
    pieces.iter().map(|piece| PIECES[*piece]).collect()
}

/// Evaluates a search exhaustively: returns every hit, the best first.
fn plainly(records: &HashMap<u8, Searchable>, search: &Search, weights: &[u8]) -> Vec<Hit> {
    let conditions = SearchQuery::of(&search.text).conditions;
    let hit = |record: &Searchable| {
        let terms = Terms::of(&text(&record.texts));
        let length = score::length(terms.count());
        let mut score = 0;
        for (condition, weight) in conditions.iter().zip(weights) {
            let frequency = terms.frequency(condition);
            if frequency == 0 || search.from.is_some_and(|from| record.at < from) || search.before.is_some_and(|before| record.at >= before)
            {
                return None;
            }
            score += u32::from(*weight) * score::saturation(frequency, length);
        }
        Some(Hit { id: record.id.clone(), at: record.at, score })
    };
    let mut hits: Vec<Hit> = if conditions.is_empty() { vec![] } else { records.values().filter_map(hit).collect() };
    hits.sort_by_key(|hit| std::cmp::Reverse((hit.score, hit.at, pack(&hit.id))));
    hits
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn paginated_searches_return_the_hits_of_an_exhaustive_evaluation(
        steps in prop::collection::vec(step(), 50..400),
        searches in prop::collection::vec((prop::collection::vec(0..PIECES.len(), 1..4), 1..12_u32), 12),
        merged in any::<bool>(),
        fresh in prop::collection::vec((any::<u8>(), prop::collection::vec(0..PIECES.len(), 1..7)), 0..20),
    ) {
        let (mut view, mut index, _home) = indexed(&[]);
        let mut records: HashMap<u8, Searchable> = HashMap::new();
        for step in steps {
            match step {
                Step::Put { id, at, pieces, again } => {
                    let record = message("s", &format!("m{id}"), at, &said(&pieces).repeat(again));
                    index.remove(RecordKey::of(&record.store, record.noun, &record.id));
                    index.add(&record).unwrap();
                    index.add(&message("another", &format!("m{id}"), at, &said(&pieces))).unwrap();
                    records.insert(id, record);
                }
                Step::Remove(id) => {
                    index.remove(RecordKey::of(&"s".into(), SearchableKind::Message, &format!("m{id}")));
                    records.remove(&id);
                }
                Step::Commit => index.commit(&LogPosition::default()).unwrap(),
            }
        }
        index.commit(&LogPosition::default()).unwrap();
        if merged {
            index = index.settle().unwrap();
        }
        view.look_at(index.reader.searcher()).unwrap();
        for (id, pieces) in fresh {
            let record = message("s", &format!("m{id}"), 3, &said(&pieces));
            put_in_overlay(&mut view, std::slice::from_ref(&record));
            records.insert(id, record);
        }
        for (number, (pieces, size)) in searches.into_iter().enumerate() {
            let mut wanted = search(SearchableKind::Message, &said(&pieces), size);
            if number % 3 == 1 {
                (wanted.from, wanted.before) = (Some(1), Some(4));
            }
            if number % 4 == 2 {
                wanted.order = SortOrder::Newest;
            }
            let weights = view.search(&wanted).unwrap().weights;
            let expected = plainly(&records, &wanted, &weights);
            let hits = walk(&mut view, &wanted, |_| {});
            prop_assert_eq!(&hits, &expected, "{:?} by {}", wanted.text, size);
            wanted.page.count = true;
            prop_assert_eq!(view.search(&wanted).unwrap().total, Some(expected.len() as u64));
        }
    }
}

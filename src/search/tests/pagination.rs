//! Tests of pagination through hits, mostly in the order of relevance, while records are written.

use super::*;

fn greetings(count: usize) -> Vec<Searchable> {
    let text = |number: usize| match number % 5 {
        0 => "order".to_owned(),
        1 => "order order".to_owned(),
        2 => format!("my order {}", "and more ".repeat(number % 7)),
        3 => "订单号 order".to_owned(),
        _ => format!("the order of {number}"),
    };
    // Each group of fifty successive records has the same instant.
    (0..count).map(|number| message("s", &format!("m{number:05}"), (number / 50) as i64, &text(number))).collect()
}

#[test]
fn a_pagination_returns_every_hit_once_in_order() {
    let records = greetings(1000);
    let (mut view, _index, _home) = indexed(&records[..700]);
    put_in_overlay(&mut view, &records[600..]);
    for size in [1, 7, 10, 999, 1000, 1001] {
        let hits = walk(&mut view, &search(SearchableKind::Message, "order", size), |_| {});
        assert_eq!(hits.len(), 1000, "{size}");
        assert!(hits.is_sorted_by(|one, next| (one.score, one.at, &one.id) > (next.score, next.at, &next.id)), "{size}");
    }
    let newest = Search { order: SortOrder::Newest, ..search(SearchableKind::Message, "order", 10) };
    let hits = walk(&mut view, &newest, |_| {});
    assert_eq!(hits.len(), 1000);
    assert!(hits.is_sorted_by(|one, next| (one.at, &one.id) > (next.at, &next.id)));
    let counted = Search { page: PageRequest { count: true, ..newest.page.clone() }, ..newest };
    assert_eq!(view.search(&counted).unwrap().total, Some(1000));
    let between = Search { from: Some(3), before: Some(5), ..counted };
    assert_eq!(view.search(&between).unwrap().total, Some(100));
}

#[test]
fn arriving_records_neither_repeat_nor_hide_existing_hits() {
    let records = greetings(300);
    let (mut view, mut index, _home) = indexed(&records);
    for query in ["order", "订单号 order", "my ord"] {
        let wanted = search(SearchableKind::Message, query, 7);
        let before = walk(&mut view, &wanted, |_| {});
        let mut number = 0;
        let hits = walk(&mut view, &wanted, |view| {
            // These writes make frequent words rarer and rare words more frequent, in the index and in the overlay. So a new search would
            // compute other weights than the search that continues here.
            number += 1;
            let id = |kind: &str| format!("{kind}-{query}-{number}");
            index.add(&message("s", &id("new"), 1000 + number, "another order 订单号 order my")).unwrap();
            index.add(&message("s", &id("other"), 0, "nothing of the kind")).unwrap();
            index.commit(&LogPosition::default()).unwrap();
            view.look_at(index.reader.searcher()).unwrap();
            put_in_overlay(view, &[message("s", &id("fresh"), 2000, "订单号 order order")]);
        });
        let was_there: Vec<&Hit> = hits.iter().filter(|hit| hit.id.starts_with('m')).collect();
        assert_eq!(was_there, before.iter().filter(|hit| hit.id.starts_with('m')).collect::<Vec<_>>(), "{query}");
        let mut once: Vec<&str> = ids(&hits);
        once.dedup();
        assert_eq!(once.len(), hits.len(), "{query}");
    }
}

#[test]
fn another_store_changes_no_score() {
    let records = greetings(50);
    let wanted = search(SearchableKind::Message, "my order", 100);
    let alone = indexed(&records).0.search(&wanted).unwrap();
    let others: Vec<Searchable> = (0..500).map(|number| message("t", &format!("m{number:05}"), 9, "my order my order")).collect();
    let together = indexed(&[others, records].concat()).0.search(&wanted).unwrap();
    assert_eq!((alone.hits, alone.weights), (together.hits, together.weights));
}

#[test]
fn a_changed_hit_appears_only_in_its_new_state() {
    let (mut view, _index, _home) = indexed(&[message("s", "m", 1, "an old text"), message("s", "n", 1, "an old text")]);
    put_in_overlay(&mut view, &[message("s", "m", 2, "a new text")]);
    let found = |query: &str| view.search(&search(SearchableKind::Message, query, 10)).unwrap().hits;
    assert_eq!(ids(&found("old text")), ["n"]);
    assert_eq!(ids(&found("new")), ["m"]);
    assert_eq!(ids(&found("text")), ["m", "n"]);
}

#[test]
fn a_long_query_costs_a_bounded_amount_of_work() {
    let (view, _index, _home) = indexed(&greetings(100));
    for query in [
        "\u{fdfa}".repeat(150),
        "ก่".repeat(75),
        "a ".repeat(75),
        "👍".repeat(150),
        format!("ก{}", "\u{e48}".repeat(10_000)),
        "1".repeat(150),
    ] {
        view.search(&search(SearchableKind::Message, &query, 10)).unwrap();
    }
}

#[test]
fn a_prefix_with_too_many_words_finds_the_first_words() {
    let records: Vec<Searchable> =
        (0..10_100).map(|number| message("s", &format!("m{number}"), 0, &format!("word{number:05} word{number:05}"))).collect();
    let (view, _index, _home) = indexed(&records);
    let found = view.search(&search(SearchableKind::Message, "word", 20_000)).unwrap();
    assert_eq!(found.hits.len(), 10_000);
    assert_eq!(view.search(&search(SearchableKind::Message, "wo", 20_000)).unwrap().hits.len(), 10_100);
}

#[test]
fn only_a_small_search_runs_on_the_callers_thread() {
    let mut records: Vec<Searchable> = (0..300).map(|number| message("s", &format!("m{number}"), 0, "a common text")).collect();
    records.extend((0..20).map(|number| message("s", &format!("n{number}"), 0, &format!("varied{number}"))));
    records.push(message("s", "rare", 0, "an uncommon text"));
    let (view, _index, _home) = indexed(&records);
    let small = |query: &str| view.search_if_small(&search(SearchableKind::Message, query, 10)).unwrap().map(|found| found.hits.len());
    assert_eq!(small("uncommon text"), Some(1));
    assert_eq!(small("nowhere"), Some(0));
    assert_eq!(small("common text"), None);
    assert_eq!(small("varied"), None);
    assert_eq!(small("one two three four five six seven eight nine"), None);
    assert_eq!(small(&"订单号是多少请问".repeat(3)), None);
}

#[test]
fn a_number_is_not_found_across_the_digits_of_two_numbers() {
    // The searched number is a phrase of terms of four digits. The phrase is looked up by the rarest terms that cover it: 0812, 2345 and
    // 5678. Both `two` and `one` contain these three terms.
    let common = (0..5).flat_map(|number| [(number, "x81234"), (number + 5, "y34567")]);
    let mut records: Vec<Searchable> = common.map(|(number, text)| message("s", &format!("m{number}"), 0, text)).collect();
    records.push(message("s", "two", 0, "call 0812345, ref 56789"));
    records.push(message("s", "one", 0, "call 081-234-5678 9"));
    let (view, _index, _home) = indexed(&records);
    let found = view.search(&search(SearchableKind::Message, "0812345678", 10)).unwrap();
    assert_eq!(found.hits.iter().map(|hit| hit.id.as_str()).collect::<Vec<_>>(), ["one"]);
}

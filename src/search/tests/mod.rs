//! Tests of the whole search: without a database in `multilingual_queries`, `recall`, `early_termination` and `pagination`, and with a
//! database in `visibility_and_recovery`.

mod early_termination;
mod multilingual_queries;
mod pagination;
mod recall;
mod visibility_and_recovery;

use std::collections::{HashMap, HashSet};

use super::{
    index::{Index, RecordKey, text},
    record_terms::Terms,
    searcher::{Hit, IndexSnapshot, OverlayRecord, Search, SortOrder},
};
use crate::{
    domain::{
        paging::{PageRequest, Position, Rank},
        search::{Searchable, SearchableKind},
    },
    store::change_log::reader::LogPosition,
};

pub(super) fn message(store: &str, id: &str, at: i64, text: &str) -> Searchable {
    Searchable { store: store.into(), noun: SearchableKind::Message, id: id.into(), at, texts: vec![text.to_owned()] }
}

/// Builds an index of these records. Returns a snapshot of the index for searches, the index itself, and its directory. The index and the
/// directory must outlive the snapshot.
pub(super) fn indexed(records: &[Searchable]) -> (IndexSnapshot, Index, tempfile::TempDir) {
    let home = tempfile::tempdir().unwrap();
    let mut index = Index::create(&home.path().join("index"), "d").unwrap();
    records.iter().for_each(|record| index.add(record).unwrap());
    index.commit(&LogPosition::default()).unwrap();
    let view = IndexSnapshot::new(index.reader.searcher(), index.fields).unwrap();
    (view, index, home)
}

/// Puts records into the overlay.
pub(super) fn put_in_overlay(view: &mut IndexSnapshot, records: &[Searchable]) {
    for record in records {
        let key = RecordKey::of(&record.store, record.noun, &record.id);
        view.stale.extend(view.documents(key).unwrap());
        let fresh = OverlayRecord { terms: Terms::of(&text(&record.texts)), record: record.clone(), gone: false, new: false };
        view.fresh.insert(key, fresh.into());
    }
}

pub(super) fn search(noun: SearchableKind, text: &str, size: u32) -> Search {
    let page = PageRequest { size, after: None, count: false };
    Search { store: "s".into(), noun, text: text.to_owned(), order: SortOrder::Relevance, from: None, before: None, page }
}

/// Pages through all hits of a search and returns them. `between` is called before each page but the first.
pub(super) fn walk(view: &mut IndexSnapshot, search: &Search, mut between: impl FnMut(&mut IndexSnapshot)) -> Vec<Hit> {
    let (mut search, mut all) = (search.clone(), Vec::new());
    loop {
        let mut found = view.search(&search).unwrap();
        assert!(view.search_if_small(&search).unwrap().is_none_or(|small| small == found), "{search:?}");
        let more = found.hits.len() > search.page.size as usize;
        found.hits.truncate(search.page.size as usize);
        let last = found.hits.last().cloned();
        all.extend(found.hits);
        let Some(last) = last.filter(|_| more) else { return all };
        let rank = (search.order == SortOrder::Relevance).then_some(Rank { score: last.score, weights: found.weights });
        search.page.after = Some(Position { at: last.at, id: last.id, rank, as_of: None });
        assert!(all.len() < 100_000, "the walk does not end");
        between(view);
    }
}

pub(super) fn ids(hits: &[Hit]) -> Vec<&str> {
    let mut ids: Vec<&str> = hits.iter().map(|hit| hit.id.as_str()).collect();
    ids.sort_unstable();
    ids
}

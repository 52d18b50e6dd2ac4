//! Use-cases that search messages and contacts. The search index finds the hits, and the database has their rows.

use std::collections::HashMap;

use super::{Error, Result, Service};
use crate::{
    domain::{
        contacts::{Contact, ContactFilter},
        ids::StoreId,
        messages::Message,
        paging::{Page, PageRequest, Position, Rank},
        search::{ContactHit, MessageHit, SearchableKind},
    },
    search::{self, Hit, HitPage, Search, SortOrder},
    store::Db,
};

impl Service {
    /// Searches messages. The order is by relevance, then newest first.
    pub async fn search_messages(&self, store: &StoreId, text: &str, page: PageRequest) -> Result<Page<MessageHit>> {
        let found = self.find(search(store, SearchableKind::Message, text, page.clone())).await?;
        let rows = self.indexed().messages_by_id(store, &found.ids()).await?;
        Ok(found.page(&page, rows, |message| message.id.as_str()).map(|(hit, message)| message_hit(&hit, message)))
    }

    /// Searches contacts. The order is by relevance, then most recently updated first.
    pub async fn search_contacts(&self, store: &StoreId, text: &str, page: PageRequest) -> Result<Page<ContactHit>> {
        let found = self.find(search(store, SearchableKind::Contact, text, page.clone())).await?;
        let rows = self.indexed().contacts_by_id(store, &found.ids()).await?;
        Ok(found.page(&page, rows, |contact| contact.id.as_str()).map(|(_, contact)| contact_hit(text, contact)))
    }

    /// Finds contacts in the search index, by the search text and the update times of the filter. Returns the rows of these contacts.
    pub(super) async fn found_contacts(&self, store: &StoreId, filter: ContactFilter, page: PageRequest) -> Result<Page<Contact>> {
        let text = filter.search.unwrap_or_default();
        let order = if self.rules().contacts_by_relevance { SortOrder::Relevance } else { SortOrder::Newest };
        let found = self
            .find(Search {
                order,
                from: filter.updated_after.map(|at| at.millis()),
                before: filter.updated_before.map(|at| at.millis()),
                ..search(store, SearchableKind::Contact, &text, page.clone())
            })
            .await?;
        let rows = self.indexed().contacts_by_id(store, &found.ids()).await?;
        Ok(found.page(&page, rows, |contact| contact.id.as_str()).map(|(_, contact)| contact))
    }

    /// Returns the primary database. The rows of hits are read from it, since a standby may lag behind the search index.
    fn indexed(&self) -> Db {
        self.db().on_primary()
    }

    async fn find(&self, search: Search) -> Result<RankedHits> {
        let order = search.order;
        let unsearched = || Error::Unavailable { reason: "nothing is searched here".to_owned(), retry_after: 60 };
        let found = self.searches.as_ref().ok_or_else(unsearched)?.find(search).await?;
        Ok(RankedHits { found, ranked: order == SortOrder::Relevance })
    }
}

fn search(store: &StoreId, noun: SearchableKind, text: &str, page: PageRequest) -> Search {
    Search { store: store.clone(), noun, text: text.to_owned(), order: SortOrder::Relevance, from: None, before: None, page }
}

/// The hits of a search, in order. `ranked` says whether they are ordered by relevance.
struct RankedHits {
    found: HitPage,
    ranked: bool,
}

impl RankedHits {
    fn ids(&self) -> Vec<&str> {
        self.found.hits.iter().map(|hit| hit.id.as_str()).collect()
    }

    /// Returns the page of those hits whose rows exist in the database. The index may still contain deleted rows for a moment.
    fn page<T>(self, page: &PageRequest, rows: Vec<T>, id: impl Fn(&T) -> &str) -> Page<(Hit, T)> {
        let HitPage { mut hits, weights, total } = self.found;
        let size = page.size as usize;
        let position = |hit: &Hit| Position {
            at: hit.at,
            id: hit.id.clone(),
            rank: self.ranked.then(|| Rank { score: hit.score, weights: weights.clone() }),
            as_of: None,
        };
        let next = (hits.len() > size).then(|| hits.get(size - 1).map(position)).flatten();
        hits.truncate(size);
        let mut rows: HashMap<String, T> = rows.into_iter().map(|row| (id(&row).to_owned(), row)).collect();
        let rows = hits.into_iter().filter_map(|hit| Some((rows.remove(&hit.id)?, hit)).map(|(row, hit)| (hit, row))).collect();
        Page { rows, next, total }
    }
}

fn message_hit(hit: &Hit, message: Message) -> MessageHit {
    MessageHit {
        id: message.id,
        conversation_id: message.conversation_id,
        text: message.text,
        inbound: message.inbound,
        sent_at: message.sent_at,
        score: search::shown(hit.score),
    }
}

fn contact_hit(text: &str, contact: Contact) -> ContactHit {
    let mut matched_fields = search::matching(text, contact.searched());
    matched_fields.dedup();
    ContactHit { matched_fields, id: contact.id, full_name: contact.full_name, phone: contact.phone }
}

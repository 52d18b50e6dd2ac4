//! Concurrency limits of the outboxes: how many attempts may run at a time, for an endpoint, a store and in all.

use std::{collections::HashMap, hash::Hash};

use crate::domain::ids::StoreId;

/// The target of attempts: an account or an endpoint of a store.
pub trait StoreTarget: Clone + Eq + Hash {
    fn store(&self) -> &StoreId;
}

impl<T: Clone + Eq + Hash> StoreTarget for (StoreId, T) {
    fn store(&self) -> &StoreId {
        &self.0
    }
}

/// How many attempts there is room for.
#[derive(Debug)]
pub struct Room<'a, P> {
    pub all: usize,
    /// For one place, the attempts under way there included.
    pub each: usize,
    /// The number of attempts under way at each place.
    pub busy: &'a HashMap<P, usize>,
}

impl<P> Clone for Room<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Room<'_, P> {}

impl<'a, P: StoreTarget> Room<'a, P> {
    /// The places that have no room for another attempt.
    pub fn full(&self) -> impl Iterator<Item = &'a P> {
        self.busy.iter().filter(|(_, attempts)| **attempts >= self.each).map(|(place, _)| place)
    }

    /// The stores that have no room for another attempt.
    pub fn full_stores(&self) -> Vec<&'a StoreId> {
        self.stores().into_iter().filter(|(_, attempts)| *attempts >= self.all).map(|(store, _)| store).collect()
    }

    fn stores(&self) -> HashMap<&'a StoreId, usize> {
        let mut stores = HashMap::new();
        for (place, attempts) in self.busy {
            *stores.entry(place.store()).or_default() += attempts;
        }
        stores
    }

    /// A picker, which takes as many of the due attempts as there is room for.
    pub fn picker(&self) -> Picker<P> {
        let stores = self.stores().into_iter().map(|(store, attempts)| (store.clone(), attempts)).collect();
        Picker { free: self.all, each: self.each, places: self.busy.clone(), stores }
    }
}

/// Limits the share of a store: a store begins another attempt only while it has fewer under way than there is room for. So one store
/// alone takes half of the room, `n` greedy stores leave an `n + 1`th part to the next, and no number has to be set.
#[derive(Debug)]
pub struct Picker<P> {
    free: usize,
    each: usize,
    places: HashMap<P, usize>,
    stores: HashMap<StoreId, usize>,
}

impl<P: StoreTarget> Picker<P> {
    /// Whether there is room for one more attempt at a place. If there is, it is taken.
    pub fn take(&mut self, place: &P) -> bool {
        let at_place = self.places.get(place).copied().unwrap_or_default();
        let of_store = self.stores.get(place.store()).copied().unwrap_or_default();
        if at_place >= self.each || of_store >= self.free {
            return false;
        }
        self.free -= 1;
        self.places.insert(place.clone(), at_place + 1);
        self.stores.insert(place.store().clone(), of_store + 1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of its wanted attempts each store gets of 512, claimed one after the other.
    fn shares(wanted: &[(&str, usize)]) -> Vec<usize> {
        let nothing = HashMap::new();
        let mut picker = Room { all: 512, each: 16, busy: &nothing }.picker();
        let taken = |(store, wanted): &(&str, usize)| {
            (0..*wanted).filter(|place| picker.take(&(StoreId::from((*store).to_owned()), place / 16))).count()
        };
        wanted.iter().map(taken).collect()
    }

    #[test]
    fn a_store_leaves_room_for_the_next() {
        assert_eq!(shares(&[("greedy", 640), ("other", 20)]), [256, 20]);
        assert_eq!(shares(&[("a", 640), ("b", 640), ("c", 640), ("d", 640)]), [256, 128, 64, 32]);
        assert_eq!(shares(&[("small", 5)]), [5]);
    }

    #[test]
    fn what_is_full_is_told() {
        let place = |store: &str, place: usize| (StoreId::from(store.to_owned()), place);
        let busy = HashMap::from([(place("a", 0), 6), (place("a", 1), 4), (place("b", 0), 3)]);
        let room = Room { all: 10, each: 6, busy: &busy };
        assert_eq!(room.full().collect::<Vec<_>>(), [&place("a", 0)]);
        assert_eq!(room.full_stores(), [&StoreId::from("a".to_owned())]);
        let mut picker = room.picker();
        assert!(!picker.take(&place("a", 2)));
        assert!(picker.take(&place("b", 0)));
    }
}

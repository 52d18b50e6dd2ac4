//! Limits on the attempts to send a queued message to a channel account, or a queued event to a webhook endpoint: how many attempts may run
//! at the same time for one account or endpoint, for one store (tenant), and in all.

use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
};

use crate::{
    domain::ids::StoreId,
    store::{Db, Result},
};

/// The capacity for attempts, and the attempts in progress. The target of an attempt is a store and one of its accounts or endpoints.
#[derive(Debug)]
pub struct AttemptLimits<'a, P> {
    /// The number of further attempts that may start in all.
    pub all: usize,
    /// The most attempts for one target that may run at the same time.
    pub each: usize,
    /// The number of attempts in progress for each target.
    pub busy: &'a HashMap<P, usize>,
}

impl<P> Clone for AttemptLimits<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for AttemptLimits<'_, P> {}

impl<'a, T: Clone + Eq + Hash> AttemptLimits<'a, (StoreId, T)> {
    /// Returns the targets for which no further attempt may start.
    pub fn full(&self) -> impl Iterator<Item = &'a (StoreId, T)> {
        self.busy.iter().filter(|(_, attempts)| **attempts >= self.each).map(|(place, _)| place)
    }

    /// Returns the stores for which no further attempt may start.
    pub fn full_stores(&self) -> Vec<&'a StoreId> {
        self.stores().into_iter().filter(|(_, attempts)| *attempts >= self.all).map(|(store, _)| store).collect()
    }

    fn stores(&self) -> HashMap<&'a StoreId, usize> {
        let mut stores = HashMap::new();
        for ((store, _), attempts) in self.busy {
            *stores.entry(store).or_default() += attempts;
        }
        stores
    }

    /// Returns how many attempts may start for each target. `due` has the target of each due attempt, in the order in which the attempts
    /// are to start.
    pub fn allotted(&self, due: impl IntoIterator<Item = (StoreId, T)>) -> Allotment<(StoreId, T)> {
        let (mut picker, mut allotted) = (self.picker(), HashMap::new());
        for place in due {
            if picker.take(&place) {
                *allotted.entry(place).or_default() += 1;
            }
        }
        Allotment(allotted)
    }

    /// Returns a picker, which selects as many of the due attempts as the limits permit.
    pub fn picker(&self) -> AttemptPicker<(StoreId, T)> {
        let stores = self.stores().into_iter().map(|(store, attempts)| (store.clone(), attempts)).collect();
        AttemptPicker { free: self.all, each: self.each, places: self.busy.clone(), stores }
    }
}

/// Selects the attempts that may start, so that each store gets a fair share of the capacity. A store may start another attempt only while
/// it has fewer attempts in progress than the capacity that is free for all stores together. So one store alone uses half of the capacity.
/// If `n` stores always have due attempts, in time each of them uses `1/(n + 1)` of the capacity, and `1/(n + 1)` stays free for the next
/// store.
#[derive(Debug)]
pub struct AttemptPicker<P> {
    free: usize,
    each: usize,
    places: HashMap<P, usize>,
    stores: HashMap<StoreId, usize>,
}

impl<T: Clone + Eq + Hash> AttemptPicker<(StoreId, T)> {
    /// Reserves capacity for one more attempt for a target. Returns whether there was capacity.
    pub fn take(&mut self, place: &(StoreId, T)) -> bool {
        let at_place = self.places.get(place).copied().unwrap_or_default();
        let of_store = self.stores.get(&place.0).copied().unwrap_or_default();
        if at_place >= self.each || of_store >= self.free {
            return false;
        }
        self.free -= 1;
        self.places.insert(place.clone(), at_place + 1);
        self.stores.insert(place.0.clone(), of_store + 1);
        true
    }
}

/// The number of attempts that may start now for each target.
#[derive(Clone, Debug)]
pub struct Allotment<P>(HashMap<P, usize>);

impl<T: Eq + Hash> Allotment<(StoreId, T)> {
    /// Subtracts one from a target's number of attempts. Returns `false` if no attempt was left.
    pub fn take(&mut self, place: &(StoreId, T)) -> bool {
        let left = self.0.get_mut(place).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    }

    /// Returns the targets.
    pub fn targets(&self) -> impl Iterator<Item = &(StoreId, T)> {
        self.0.keys()
    }

    /// Returns each target with its number of attempts.
    pub fn each(self) -> impl Iterator<Item = ((StoreId, T), usize)> {
        self.0.into_iter()
    }

    /// Splits the allotment into one for each store.
    fn by_store(self) -> BTreeMap<StoreId, Self> {
        let mut stores = BTreeMap::new();
        for (place, attempts) in self.0 {
            stores.entry(place.0.clone()).or_insert_with(|| Self(HashMap::new())).0.insert(place, attempts);
        }
        stores
    }
}

impl Db {
    /// Calls `claim` for each store with its allotment, and returns what all calls claimed. If a call fails, the attempts that other calls
    /// claimed are still made.
    pub(super) async fn claim_by_store<T, C, F>(
        &self,
        allotted: Allotment<(StoreId, T)>,
        claim: impl Fn(StoreId, Allotment<(StoreId, T)>) -> F,
    ) -> Result<Vec<C>>
    where
        T: Eq + Hash,
        F: Future<Output = Result<Vec<C>>>,
    {
        let (mut claimed, mut failed) = (Vec::new(), None);
        for (store, allotted) in allotted.by_store() {
            match claim(store, allotted).await {
                Ok(of_store) => claimed.extend(of_store),
                Err(error) => {
                    failed = Some(error);
                    // In a distributed database, the next stores may be on nodes that answer, so the loop continues.
                    if !self.is_distributed() {
                        break;
                    }
                }
            }
        }
        match failed {
            Some(error) if claimed.is_empty() => Err(error),
            Some(error) => {
                tracing::warn!(%error, "the due attempts of a store were not claimed");
                Ok(claimed)
            }
            None => Ok(claimed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many attempts each store gets of a capacity of 512, if one store after the other claims all attempts that it wants.
    fn shares(wanted: &[(&str, usize)]) -> Vec<usize> {
        let nothing = HashMap::new();
        let mut picker = AttemptLimits { all: 512, each: 16, busy: &nothing }.picker();
        let taken = |(store, wanted): &(&str, usize)| {
            (0..*wanted).filter(|place| picker.take(&(StoreId::from((*store).to_owned()), place / 16))).count()
        };
        wanted.iter().map(taken).collect()
    }

    #[test]
    fn a_store_leaves_capacity_for_other_stores() {
        assert_eq!(shares(&[("greedy", 640), ("other", 20)]), [256, 20]);
        assert_eq!(shares(&[("a", 640), ("b", 640), ("c", 640), ("d", 640)]), [256, 128, 64, 32]);
        assert_eq!(shares(&[("small", 5)]), [5]);
    }

    #[test]
    fn targets_and_stores_at_their_limit_are_reported_and_not_picked() {
        let place = |store: &str, place: usize| (StoreId::from(store.to_owned()), place);
        let busy = HashMap::from([(place("a", 0), 6), (place("a", 1), 4), (place("b", 0), 3)]);
        let room = AttemptLimits { all: 10, each: 6, busy: &busy };
        assert_eq!(room.full().collect::<Vec<_>>(), [&place("a", 0)]);
        assert_eq!(room.full_stores(), [&StoreId::from("a".to_owned())]);
        let mut picker = room.picker();
        assert!(!picker.take(&place("a", 2)));
        assert!(picker.take(&place("b", 0)));
    }
}

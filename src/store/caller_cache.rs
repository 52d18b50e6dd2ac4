//! The cache of callers on SQLite: who an API key belongs to, until anything is committed to the database.
//!
//! Each request looks its caller up, so that a changed key counts immediately in every process. On SQLite, a connection can tell whether
//! another one has committed ([`DatabaseState`]). While nothing is committed, the last look-up on the same connection is still true, and is
//! not repeated. Each thread has its own connection, and so its own part of the cache.

use std::collections::HashMap;

use crate::{
    domain::{
        api_keys::{Caller, SecretHash},
        time::Timestamp,
    },
    store::{
        postgres::replica::Transaction,
        sqlite::{per_thread_slots::PerThread, read_connection::DatabaseState},
    },
};

/// The number of API keys that each thread remembers. A thread that has reached the number forgets all.
const MAX_CALLERS: usize = 1000;

#[derive(Default)]
pub(in crate::store) struct CallerCache(PerThread<HashMap<SecretHash, RememberedCaller>>);

/// A caller and, from the same look-up, the newest transaction that changed the caller's store.
#[derive(Clone, Debug)]
pub struct LookedUpCaller {
    pub caller: Caller,
    /// If there is a standby: the newest transaction that changed the caller's store. The request may read from the standby only once the
    /// standby shows this transaction.
    pub newest: Option<Transaction>,
}

struct RememberedCaller {
    state: DatabaseState,
    /// The time at which the key or its secret expires.
    until: Timestamp,
    caller: LookedUpCaller,
}

impl CallerCache {
    /// Returns the caller, and the time at which the key expires, if the database is still in the state of the look-up.
    pub fn get(&self, hash: &SecretHash, state: DatabaseState) -> Option<(Timestamp, LookedUpCaller)> {
        let callers = self.0.here().lock();
        callers.get(hash).filter(|entry| entry.state == state).map(|entry| (entry.until, entry.caller.clone()))
    }

    /// Remembers a look-up in the state `state` of the database.
    pub fn put(&self, hash: &SecretHash, state: DatabaseState, (until, caller): (Timestamp, LookedUpCaller)) {
        let mut callers = self.0.here().lock();
        if callers.len() >= MAX_CALLERS {
            callers.clear();
        }
        callers.insert(hash.clone(), RememberedCaller { state, until, caller });
    }
}

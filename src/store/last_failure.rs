//! Health state: when a statement last failed because the database could not do its work. All clones of a [`LastFailure`] share this time.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crate::store::{error::Error, mutex::lock};

/// When a statement last failed with [`Error::Failing`] or [`Error::Unusable`]. The health probe needs this time: on a nearly full disk the
/// small write of the probe succeeds while the larger writes of requests fail.
#[derive(Clone, Default)]
pub(in crate::store) struct LastFailure(Arc<Mutex<Option<Instant>>>);

impl LastFailure {
    pub fn note(&self, error: &Error) {
        if matches!(error, Error::Failing(_) | Error::Unusable(_)) {
            *lock(&self.0) = Some(Instant::now());
        }
    }

    pub fn is_within(&self, time: Duration) -> bool {
        lock(&self.0).is_some_and(|at| at.elapsed() < time)
    }
}

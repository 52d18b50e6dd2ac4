//! When a statement last failed because of the disk or of missing permissions, shared by the database, its readers and its writers.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crate::store::{error::Error, lock::lock};

/// When a statement last failed because the database could not do its work. It is kept because a nearly full disk takes the small write
/// of a probe and refuses what requests write.
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

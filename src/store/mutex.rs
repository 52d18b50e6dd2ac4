//! Locking a mutex without regard to poisoning: the values in the mutexes of `store` are changed in single steps, so that a panic leaves
//! them valid.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

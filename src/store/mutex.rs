//! Locks a mutex, and ignores that the mutex is poisoned. After a panic the values in the mutexes of `store` are still valid, since each of
//! their changes is a single step.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

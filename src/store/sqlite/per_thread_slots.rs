//! Per-thread slots: as a rule each thread has a value of its own, so that threads share neither a lock nor a cache line.
//!
//! The number of a thread selects its slot. When a thread has ended, its value stays in the slot, for the next thread whose number selects
//! the same slot.

use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicUsize, Ordering},
};

use crate::store::mutex::lock;

/// The number of slots. On most machines it is greater than the number of threads of a runtime, so that two threads seldom share a slot.
const SLOTS: usize = 64;

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static NUMBER: usize = THREADS.fetch_add(1, Ordering::Relaxed);
}

pub(in crate::store) struct PerThread<T>(Vec<ThreadSlot<T>>);

/// A value behind a lock, aligned so that two locks do not share a cache line.
#[derive(Default)]
#[repr(align(128))]
pub(in crate::store) struct ThreadSlot<T>(Mutex<T>);

impl<T> ThreadSlot<T> {
    pub fn lock(&self) -> MutexGuard<'_, T> {
        lock(&self.0)
    }
}

impl<T: Default> Default for PerThread<T> {
    fn default() -> Self {
        Self(std::iter::repeat_with(ThreadSlot::default).take(SLOTS).collect())
    }
}

impl<T> PerThread<T> {
    /// Returns the slot of the calling thread.
    pub fn here(&self) -> &ThreadSlot<T> {
        &self.0[NUMBER.with(|number| number % SLOTS)]
    }

    pub fn all(&self) -> impl Iterator<Item = &ThreadSlot<T>> {
        self.0.iter()
    }
}

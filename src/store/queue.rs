//! What the two queues, of messages and of events, are claimed by.

use std::collections::HashMap;

/// What there is room for.
#[derive(Debug)]
pub struct Room<'a, P> {
    pub all: usize,
    /// For one place, what goes on there included.
    pub each: usize,
    /// What goes on.
    pub busy: &'a HashMap<P, usize>,
}

impl<P> Clone for Room<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Room<'_, P> {}

impl<P> Room<'_, P> {
    /// Places that have all they can do.
    pub fn full(&self) -> impl Iterator<Item = &P> {
        self.busy.iter().filter(|(_, attempts)| **attempts >= self.each).map(|(place, _)| place)
    }
}

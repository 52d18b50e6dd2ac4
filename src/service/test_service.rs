//! Test fixtures for the tests of `service` and `delivery`: an event renderer without output, and a service with the clock of a test.

use std::sync::Arc;

use super::{Renderer, Service};
use crate::{
    domain::{
        clock::{Clock, ClocksAndIds, RandomIds},
        events::Event,
        fake_clock_and_test_rules::RULES,
        ids::StoreId,
    },
    store::Db,
};

/// An event renderer that returns no bytes.
pub(crate) struct Silent;

impl Renderer for Silent {
    fn render(&self, _: &StoreId, _: &Event) -> Vec<u8> {
        Vec::new()
    }
}

pub(crate) fn service(db: Db, clock: Arc<dyn Clock>, events: impl Renderer) -> Service {
    Service::new(db, ClocksAndIds::of(clock, Arc::new(RandomIds)), RULES, Arc::new(events))
}

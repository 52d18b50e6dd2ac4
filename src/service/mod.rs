//! Use-cases, one file a noun. Called by `http` and `cli`; calls `store`; owns the transaction of every write.

pub mod accounts;
pub mod contacts;
pub mod conversations;
pub mod error;
pub mod export;
pub mod fields;
pub mod import;
pub mod keys;
pub mod messages;
pub mod stores;
pub mod team;
pub mod tickets;

use crate::{
    domain::{clock::World, rules::Rules},
    store::Db,
};

pub use error::{Error, Result};

/// Every use-case of one deployment.
#[derive(Clone)]
pub struct Service {
    db: Db,
    world: World,
    rules: Rules,
}

impl Service {
    pub fn new(db: Db, world: World, rules: Rules) -> Self {
        Self { db, world, rules }
    }

    pub fn db(&self) -> &Db {
        &self.db
    }

    pub fn world(&self) -> &World {
        &self.world
    }

    pub fn rules(&self) -> &Rules {
        &self.rules
    }
}

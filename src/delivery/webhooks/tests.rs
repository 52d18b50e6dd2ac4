//! Tests of webhook delivery to local endpoints, with a fake clock.

mod concurrency;
mod fixture;
mod health;
mod load;
mod replay;
mod schedule;
mod subscriptions;
mod targets;

use super::super::testing as endpoint;

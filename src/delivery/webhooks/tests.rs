//! Tests of webhook delivery to local endpoints, with a fake clock.

mod bench;
mod concurrency;
mod health;
mod replay;
mod schedule;
mod subscriptions;
mod targets;
mod ten_endpoints;

use super::super::testing as endpoint;

//! Deliveries to local endpoints, with a clock that can be moved.

mod bench;
mod concurrency;
mod endpoint;
mod health;
mod replay;
mod schedule;
mod subscriptions;
mod targets;
mod ten_endpoints;

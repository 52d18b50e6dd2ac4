//! Tests of webhook delivery to local endpoints, with a fake clock.

mod concurrency;
mod disabled_subscriptions;
mod fixture;
mod load;
mod replay;
mod retry_schedule;
mod ssrf;
mod subscriptions;

use super::super::scripted_endpoints as endpoint;

//! The revision of the contract that this build serves, and the only file that knows how the choice is made.
//!
//! No feature: revision B. `rev-a`: revision A. Everything that differs by value is in `RULES`; by shape, under the
//! same name in `wire`; by set of endpoints, in `extra`. All other code names this module and never `a` or `b`.

#[cfg(all(feature = "rev-a", feature = "rev-b"))]
compile_error!("a build serves one revision: `cargo build` for B, or `cargo build --features rev-a` for A");

#[cfg(feature = "rev-a")]
mod a;
#[cfg(feature = "rev-a")]
use a as chosen;

#[cfg(not(feature = "rev-a"))]
mod b;
#[cfg(not(feature = "rev-a"))]
use b as chosen;

pub use chosen::{ANSWERS, CHANNELS, EVENTS, NAME, REQUESTS, RULES, UNCAUSED_EVENTS, VERSION, extra, wire};

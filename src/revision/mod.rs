//! Compile-time selection of the API revision (A or B) that this build serves. In `src`, only this module tests the Cargo feature that
//! selects the revision.
//!
//! Without a feature, the build serves revision B; with the feature `rev-a`, revision A. `RULES` holds the differences that are plain
//! values, such as limits. `wire` holds the types whose form differs, under the same names in both revisions. `extra` returns the
//! operations that only the selected revision has. All other code refers to this module and never to `a` or `b`.

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

pub use chosen::{ANSWERS, CHANNELS, ERRORS, EVENTS, NAME, REFUSALS, REQUESTS, RULES, UNCAUSED_EVENTS, VERSION, extra, wire};

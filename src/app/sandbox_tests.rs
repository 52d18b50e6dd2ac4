//! A shop on the clock of a sandbox, and the same shop on the clock of the test suite.

mod due;
mod half_year;
mod shop;

//! Tests of the sandbox clock: a test store ("shop") in a sandbox whose clock is advanced, compared with a store on the test suite's fake
//! clock.

mod clocked_shop;
mod due;
mod half_year;

//! Tests of the sandbox, which is a test database whose clock can be advanced. A store ("shop") in a sandbox must give the same results as
//! a store on the fake clock of the test suite.

mod clock_advance_tests;
mod fixture;
mod half_year_on_sandbox_and_fake_clock;

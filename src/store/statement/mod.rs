//! SQL statements: conversion of statements that SeaORM builds, and statements for keyset pages, as-of pages and look-ups by key.

pub mod as_of;
pub mod from_entities;
pub mod key_lookup;
pub mod key_lookup_types;
pub mod pages;
#[cfg(test)]
mod query_cost;

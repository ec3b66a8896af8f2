//! Engines are tried before they serve.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../support/lengths.rs"]
mod lengths;
#[allow(dead_code, reason = "the pairs are used here, and not what other tests do with them")]
#[path = "../methods/pairs.rs"]
mod pairs;

mod cache;
mod found;
mod smollm2;
mod support;
mod worked;

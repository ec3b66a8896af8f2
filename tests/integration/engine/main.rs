//! The engine: many texts at once, each as if it were alone.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod adaptive;
mod boundaries;
mod drafters;
mod hostile;
mod isolation;
#[path = "../support/lengths.rs"]
mod lengths;
mod lossless;
mod memories;
mod midway;
#[allow(dead_code, reason = "shared with tests that need other parts of it")]
#[path = "../methods/pairs.rs"]
mod pairs;
mod requests;
mod sampled;
mod saved;
mod scripted;
mod store;
mod support;
mod table;
mod verification;
mod waiting;

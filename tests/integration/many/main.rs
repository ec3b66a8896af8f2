//! Many sequences side by side, below the safe library: each drafts and answers as if it were alone.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod drafters;
mod kinds;
#[path = "../../../llama-sys/testing/many.rs"]
mod many;
#[path = "../../../llama-sys/testing/raw.rs"]
#[allow(dead_code, reason = "shared with tests that need other parts of it")]
mod raw;
mod side_by_side;

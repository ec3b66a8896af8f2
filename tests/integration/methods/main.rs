//! Drafts that read the target's hidden states, and models whose memory cannot be cut back: the text is that of plain
//! decoding, whatever drafts, and requests leave no trace.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../support/lengths.rs"]
mod lengths;
mod lossless;
mod pairs;
mod refusals;
mod requests;

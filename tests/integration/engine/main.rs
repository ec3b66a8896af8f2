//! The engine: many texts at once, each as if it were alone.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod requests;
mod support;

//! What llama.cpp really makes of the files of the zoo.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod assistants;
mod broken;
mod drafts;
mod models;
mod mtp;
#[path = "../../../llama-sys/testing/pair.rs"]
mod pair;
#[path = "../../../llama-sys/testing/raw.rs"]
mod raw;

//! What llama.cpp really makes of the files of the zoo.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod broken;
mod drafts;
mod models;
mod mtp;
mod pair;
mod raw;

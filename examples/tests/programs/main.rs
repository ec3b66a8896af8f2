//! The programs from outside, as a user or a script runs them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bad_input;
mod chat;
mod common;
mod generate;
mod inspect;
#[cfg(unix)]
mod interrupt;
mod server;

//! The server, used by the clients that programs for such servers are written with.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod python;
mod rust;
mod served;

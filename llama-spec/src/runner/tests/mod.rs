//! What happens when calls of llama.cpp fail.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod chains;
mod engine;
mod every_call;
mod numbers;
mod positions;
mod retry;
mod side_by_side;
mod soak;
mod soak_client;
mod stepwise;
mod support;

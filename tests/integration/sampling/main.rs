//! Sampling on real rows of logits: what each setting does, the distribution of what is drawn, grammars, verification.
#![allow(clippy::unwrap_used, reason = "this is a test; its helpers are not recognised as such")]

mod distribution;
mod grammar;
mod min_tokens;
mod reasoning;
mod refusals;
mod saved;
mod stages;
mod state;
mod support;
mod texts;
mod verify;

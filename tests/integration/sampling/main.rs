//! Sampling on real rows of logits: what each setting does, the distribution of what is drawn, grammars, verification.

mod distribution;
mod grammar;
mod reasoning;
mod refusals;
mod stages;
mod state;
mod support;
mod verify;

//! Chat templates: what they render, and how answers are taken apart.
#![allow(clippy::unwrap_used, reason = "this is a test; its helpers are not recognised as such")]

mod answers;
mod hostile;
mod render;
mod support;
mod tools;

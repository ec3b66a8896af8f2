//! The page of the server in a browser, with a server in the place of the real one that says what it is told to.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod browser;
mod chat;
mod hostile;
mod keyboard;
mod live;
mod looks;
mod stand_in;
mod troubles;

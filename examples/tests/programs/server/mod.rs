//! The server from outside: how it starts and refuses to, who is let in, what it puts up with, and how it ends.

mod auth;
mod limits;
mod process;
#[cfg(unix)]
mod serving;
mod settings;
mod start;

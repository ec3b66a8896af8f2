//! The server from outside: how it starts and refuses to, who is let in, what it puts up with, and how it ends.

mod auth;
mod limits;
mod process;
mod settings;
mod start;

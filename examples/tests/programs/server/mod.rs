//! The server from outside: how it starts and refuses to, who is let in, what it puts up with, and how it ends.

mod admin;
mod auth;
mod clients;
mod like_llama_server;
mod limits;
mod pairs;
mod process;
#[cfg(target_os = "linux")]
mod recovery;
#[cfg(unix)]
mod serving;
mod settings;
mod start;
#[cfg(unix)]
mod store;
#[cfg(target_os = "linux")]
mod storm;
mod streams;

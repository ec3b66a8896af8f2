//! The program `server`: an HTTP interface like OpenAI's and llama-server's, over an engine in a process of its own.

pub mod access;
pub mod api;
pub mod auth;
pub mod config;
mod engine;
pub mod fault;
mod greeting;
pub mod limits;
pub mod listen;
mod news;
pub mod origin;
pub mod page;
pub mod plan;
pub mod run;
pub mod tenant;

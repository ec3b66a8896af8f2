//! What the programs `inspect`, `generate`, `chat` and `server` are made of: arguments, loading with progress, output, errors.

pub mod args;
pub mod chat;
pub mod colour;
pub mod failure;
pub mod inspect;
pub mod interrupt;
pub mod load;
pub mod logging;
pub mod output;
pub mod progress;
pub mod prompt;
pub mod report;
pub mod server;

pub use failure::{Failure, begin, start};

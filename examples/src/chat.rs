//! A conversation in the terminal: what the user types, what the model answers.

mod command;
mod input;
mod session;
mod stream;

pub use command::{Command, HELP};
pub use input::Input;
pub use session::{Session, Settings};

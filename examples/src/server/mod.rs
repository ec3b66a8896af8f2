//! The server: an HTTP interface like OpenAI's and llama-server's over a supervised engine.

pub mod page;

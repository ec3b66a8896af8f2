//! llama-server's own interface: names of requests and answers are those of its README.

pub(super) mod completion;
pub(super) mod settings;
pub(super) mod slots;
pub(super) mod text;

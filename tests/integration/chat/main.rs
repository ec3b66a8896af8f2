//! Chat templates: what they render, and how answers are taken apart.

mod answers;
mod hostile;
mod render;
mod support;
mod tools;

//! Services on models whose texts are known.

mod frames;
mod support;
mod texts;

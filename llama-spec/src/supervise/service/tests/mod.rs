//! Services on models whose texts are known.

mod chats;
mod failures;
mod frames;
mod loads;
mod resumed;
mod store;
mod support;
mod texts;

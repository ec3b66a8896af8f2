//! Many sequences at once in one context.

// The loop that uses these is not here yet; its tests do.
#[cfg_attr(not(test), expect(dead_code, reason = "used by the loop"))]
mod health;
mod metrics;
#[cfg_attr(not(test), expect(dead_code, reason = "used by the loop"))]
mod queue;
mod stats;

pub use queue::Priority;
pub use stats::{EngineStats, SlotStats};

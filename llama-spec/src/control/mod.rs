//! placeholder
mod acceptance;
mod account;
mod chain;
mod choosing;
mod controller;
mod cost;
mod effect;
mod learning;
mod plan;
mod planning;
mod pool;
#[cfg(test)]
mod simulator;
mod usage;

pub use account::{Account, DrafterAccount, DrafterState};
pub use chain::{Chain, DrafterIndex, DrafterKind, DrafterSpec, Evidence, Guess, Sequence};
pub use controller::{ControlSettings, Controller};
pub use cost::Costs;
pub use plan::{Choice, DrafterTimes, Outcome, Pick, Plan, PlannedDraft, Verified};

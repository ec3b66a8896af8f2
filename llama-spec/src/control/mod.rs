//! Who drafts how much: the controller of speculation.
//!
//! A draft pays when the tokens it brings are worth more than the time it takes, and both differ by model, machine,
//! depth and text. So nothing here is a fixed setting. In each round the controller weighs, for all texts together,
//!
//! ```text
//!            tokens to be expected               n + sum of survivals
//!   rate = ------------------------- = -----------------------------------------
//!            seconds to be expected     D(steps) + T(n + drafted) + F + P(reject) R
//! ```
//!
//! where the *survival* of a drafted token is how probable it is that it and all before it are right, `T` decodes and
//! samples a batch, `D` drafts, `F` lets the model drafters follow, `R` takes rejected tokens back. Drafting nothing is
//! one of the candidates.
//!
//! # A round
//!
//! 1. The free drafters (lookup, a user's own) have their drafts ready. [`Controller::plan`] decides whether a drafter
//!    that costs time runs, for which texts, and who keeps following the target. A drafter that can go on behind the draft of
//!    another ([`DrafterSpec::goes_on`]) does so behind as much of it as is believed no less than its own tokens would be: these
//!    need no steps.
//! 2. A step-wise drafter asks [`Controller::go_on`] after each token.
//! 3. [`Controller::choose`] picks for each text a draft and how much of it is verified.
//! 4. [`Controller::observe`] is told what was accepted and what everything took; [`Controller::shadow`], what drafters
//!    that were not asked would have said.
//!
//! # What it knows
//!
//! - **Costs** (`cost`). The logarithm of a time is a sum of effects (rows, depth, drift of the machine), each with its
//!   own uncertainty, learned by a Kalman filter (`effect`) that cuts outliers. `T` stays a staircase: it is made
//!   non-decreasing and no smoother. Beyond what was measured it is linear, the worst case. [`Costs`] are kept for the
//!   next start.
//! - **Acceptance** (`acceptance`). For model drafters a logistic curve in the probability or margin of the token; for
//!   lookup counts by kind of evidence; for each text an offset that comes to rest, and that cumulative sums (CUSUM)
//!   wake when the text turns. Only tokens up to the first wrong one are learned from; what was drafted but not
//!   verified counts with its probability, or else a drafter would seem to be as good as its best tokens.
//!
//! # How it decides
//!
//! All survivals are pooled (`pool`): the best `b` of them are the best use of `b` rows, so one pass finds the best
//! number of rows. Numbers are compared as `tokens - price * seconds`, with the price between what a second brings in
//! this round and what it brought of late: this is the rate criterion of renewal-reward theory (Dinkelbach 1967 for the
//! ratio), less short-sighted than the ratio of one round.
//!
//! # What keeps it honest
//!
//! - **The account** (`account`). What rounds took is compared with what plain decoding would have taken. Losses are
//!   paid from a purse that fills with a share of the time (1 % unless told otherwise) and with gains, and holds
//!   little; when it is empty nothing is drafted until it has filled again. [`Controller::account`] shows it.
//! - **Tries.** A drafter that is not used is tried after 16 tokens, then 32, 64 ... 1024 (`usage`), and batches that
//!   are not well known now and then. Both are paid from a purse of their own. Drafters that rest don't follow; what
//!   they missed is part of the price of taking them up again.
//! - **Doubt.** As long as little was seen of a costly drafter, it is used if it would pay were it better by a standard
//!   error.
//! - **Determinism.** There is no clock and no chance in here: the same observations give the same decisions. Decisions
//!   change how fast a greedy text comes, never the text.
//!
//! `simulator` (tests only) has machines and texts in numbers, and scores all this against plain decoding, every fixed
//! length, and an oracle that knows what will be accepted.

mod acceptance;
mod account;
mod chain;
mod choosing;
mod controller;
mod cost;
mod drafting;
mod effect;
mod filling;
mod learning;
#[cfg(test)]
mod mixed;
mod plan;
mod planning;
mod pool;
mod round;
#[cfg(test)]
mod simulator;
mod trying;
mod usage;

pub use account::{Account, DrafterAccount, DrafterState};
pub use chain::{Chain, DrafterIndex, DrafterKind, DrafterSpec, Evidence, Guess, Sequence};
pub use controller::{ControlSettings, Controller};
pub use cost::Costs;
pub use plan::{Choice, DrafterTimes, Outcome, Pick, Plan, PlannedDraft, Verified};

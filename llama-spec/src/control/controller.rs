//! The controller: what it keeps from round to round.

use super::acceptance::{Acceptance, Bias};
use super::account::{Account, Purse};
use super::chain::{DrafterIndex, DrafterSpec, Evidence};
use super::cost::{Clock, Costs};
use super::pool::Pool;
use super::round::Round;
use super::usage::Usage;

/// How the controller may act.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ControlSettings {
    /// The share of the time that may be lost against plain decoding; 0.01 is 1 %.
    pub loss_bound: f64,
    /// By how much a draft must be expected to beat plain decoding for drafting to begin; 0.02 is 2 %.
    pub hysteresis: f64,
}

impl Default for ControlSettings {
    fn default() -> Self {
        Self { loss_bound: 0.01, hysteresis: 0.02 }
    }
}

/// Decides in each round who drafts how much for which text. See the [module](super).
#[derive(Debug)]
pub struct Controller {
    pub(super) settings: ControlSettings,
    pub(super) specs: Vec<DrafterSpec>,
    pub(super) models: Vec<Acceptance>,
    pub(super) usages: Vec<Usage>,
    pub(super) clock: Clock,
    pub(super) purse: Purse,
    /// By slot, then by drafter.
    pub(super) biases: Vec<Vec<Bias>>,
    pub(super) round: Round,
    /// How much faster than plain decoding it was of late.
    pub(super) speed: Speed,
    /// The last round drafted.
    pub(super) drafting: bool,
    pub(super) rounds: u64,
    /// Rounds since the last one without drafts.
    pub(super) since_plain: u32,
    pub(super) tokens: u64,
    pub(super) scratch: Scratch,
}

/// Seconds of plain decoding for a second, of late.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Speed {
    plain: f64,
    time: f64,
}

impl Speed {
    /// What a round leaves of what was before.
    const KEEP: f64 = 0.96;

    pub(super) fn enter(&mut self, plain: f64, time: f64) {
        (self.plain, self.time) = (self.plain * Self::KEEP + plain, self.time * Self::KEEP + time);
    }

    pub(super) fn get(&self) -> f64 {
        if self.time > 0.0 { self.plain / self.time } else { 1.0 }
    }
}

#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) free: Pool,
    pub(super) costly: Pool,
    /// A plan that is kept while another one is looked at.
    pub(super) kept: Pool,
    /// What the costly drafter may be expected to draft for each text.
    pub(super) blind: Pool,
    /// Which drafts the texts have in a pool.
    pub(super) chains: Vec<Option<usize>>,
    /// For which texts the costly drafter would draft, and behind how many tokens of their free drafts.
    pub(super) drafts: Vec<Option<usize>>,
    pub(super) kept_drafts: Vec<Option<usize>>,
    pub(super) lengths: Vec<usize>,
    /// Drafters that had tokens in a round.
    pub(super) used: Vec<bool>,
}

impl Controller {
    /// A controller of these drafters, which knows so much about their costs.
    pub fn new(settings: ControlSettings, drafters: &[DrafterSpec], costs: Costs) -> Self {
        Self {
            settings,
            models: drafters.iter().map(Acceptance::new).collect(),
            usages: drafters.iter().map(|_| Usage::default()).collect(),
            clock: Clock::new(costs, drafters.len()),
            specs: drafters.to_vec(),
            purse: Purse::new(settings.loss_bound),
            biases: Vec::new(),
            round: Round::default(),
            speed: Speed::default(),
            drafting: false,
            rounds: 0,
            since_plain: 0,
            tokens: 0,
            scratch: Scratch::default(),
        }
    }

    /// A text begins in a slot, with so many tokens that were not in the memory before.
    pub fn begin(&mut self, slot: usize, tokens: usize) {
        self.seat(slot);
        for (bias, usage) in self.biases[slot].iter_mut().zip(&self.usages) {
            *bias = Bias::default();
            bias.missed = if usage.paused { tokens } else { 0 };
        }
    }

    /// What a drafter that was not asked would have said, and whether that was right. It costs nothing and teaches as
    /// much as a verified token.
    pub fn shadow(&mut self, slot: usize, drafter: DrafterIndex, evidence: Evidence, right: bool) {
        self.seat(slot);
        let Some(bias) = self.biases.get_mut(slot).and_then(|biases| biases.get_mut(drafter)) else { return };
        if let (Some(model), Some(usage)) = (self.models.get_mut(drafter), self.usages.get_mut(drafter)) {
            model.shadow(bias, evidence, right);
            usage.shadowed = true;
        }
    }

    /// What was learned about times, for the next start.
    pub fn costs(&self) -> &Costs {
        self.clock.costs()
    }

    /// How it went so far.
    pub fn account(&self) -> Account {
        self.purse.account(self.tokens, self.usages.iter().map(Usage::account).collect())
    }

    pub(super) fn seat(&mut self, slot: usize) -> &mut [Bias] {
        let drafters = self.specs.len();
        if self.biases.len() <= slot {
            self.biases.resize_with(slot + 1, || vec![Bias::default(); drafters]);
        }
        &mut self.biases[slot]
    }
}

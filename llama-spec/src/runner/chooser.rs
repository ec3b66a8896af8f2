//! The controller of a runner: who is in its list of drafters, and what it is told of each round.

use super::offer::Offers;
use crate::control::{
    Account, Chain, Choice, ControlSettings, Controller, Costs, DrafterKind, DrafterSpec, DrafterTimes, Outcome, Pick,
    Plan, Sequence, Verified,
};
use crate::lookup;
use crate::spec::{Method, Source, SpecConfig};
use std::time::Duration;

/// How often what a grammar forces is right to the token, before that is known.
const FORCED: f32 = 0.9;

/// The controller, with the drafters in its order.
#[derive(Debug)]
pub(super) struct Chooser {
    pub(super) controller: Controller,
    drafters: Vec<(Source, DrafterSpec)>,
    settings: ControlSettings,
    /// The texts of the round.
    pub(super) sequences: Vec<Sequence>,
    pub(super) plan: Plan,
    /// For each text, how much of which of its offers the costly drafter goes on behind.
    behind: Vec<Option<(usize, usize)>>,
    choice: Choice,
    /// What the drafter that costs time did in the round.
    pub(super) costly: Option<DrafterTimes>,
}

impl Chooser {
    /// For these methods and so many drafters of the user's; `longest` is the longest draft of any of them. A drafter with a
    /// model or with heads may be `pausable`, and may be one that `goes_on` behind the drafts of others.
    pub(super) fn new(config: &SpecConfig, own: usize, longest: usize, pausable: bool, goes_on: bool) -> Self {
        let spec = |kind, buckets| {
            let steps = kind == DrafterKind::Stepwise;
            DrafterSpec { kind, longest, pausable: pausable && steps, goes_on: goes_on && steps, buckets }
        };
        let free = |source| (source, spec(DrafterKind::Free, Vec::new()));
        let own = (0..own).map(|number| free(Source::Own(number as u8)));
        let grammar = (Source::Grammar, spec(DrafterKind::Free, vec![FORCED]));
        let method = |method: Method| {
            let source = Source::Drafted(method);
            match method {
                Method::Lookup => (source, spec(DrafterKind::Free, lookup::Evidence::priors().to_vec())),
                Method::DraftDflash | Method::DraftDspark => (source, spec(DrafterKind::Block, Vec::new())),
                method if method.is_lookup() => free(source),
                _ => (source, spec(DrafterKind::Stepwise, Vec::new())),
            }
        };
        let drafters: Vec<_> = own.chain([grammar]).chain(config.effective().into_iter().map(method)).collect();
        let settings = ControlSettings { loss_bound: config.loss_max, ..ControlSettings::default() };
        Self {
            controller: controller(settings, &drafters, Costs::unknown()),
            drafters,
            settings,
            sequences: Vec::new(),
            plan: Plan::default(),
            behind: Vec::new(),
            choice: Choice::default(),
            costly: None,
        }
    }

    /// Begins anew, with what is known about times.
    pub(super) fn renew(&mut self, costs: Costs) {
        self.controller = controller(self.settings, &self.drafters, costs);
    }

    /// Where somebody stands in the controller's list.
    pub(super) fn index(&self, source: Source) -> Option<usize> {
        self.drafters.iter().position(|(known, _)| *known == source)
    }

    /// Whether the drafter that costs time does not follow the target at present.
    pub(super) fn rests(&self) -> bool {
        let mut follows = self.plan.follow.iter().zip(&self.drafters);
        follows.any(|(follows, (_, spec))| spec.pausable && !follows)
    }

    /// Which of the texts of the round is in a slot.
    pub(super) fn number(&self, slot: usize) -> Option<usize> {
        self.sequences.iter().position(|sequence| sequence.slot == slot)
    }

    /// The drafter with this number.
    pub(super) fn source(&self, index: usize) -> Option<Source> {
        self.drafters.get(index).map(|(source, _)| *source)
    }

    /// The drafters, and how it went so far.
    pub(super) fn account(&self) -> (Vec<Source>, Account) {
        (self.drafters.iter().map(|(source, _)| *source).collect(), self.controller.account())
    }

    /// Decides what costs time to draft, knowing what is offered at once.
    pub(super) fn plan<'o>(&mut self, rows: usize, offers: impl Iterator<Item = &'o Offers> + Clone) {
        let Self { controller, sequences, plan, behind, .. } = self;
        controller.plan(rows, sequences, &chains(offers.clone()), plan);
        behind.clear();
        behind.extend(numbered(offers, plan.drafts.iter().map(|draft| &draft.behind)));
        self.costly = None;
    }

    /// How many tokens the costly drafter is to draft for the text in a slot, given whether it can be stopped midway, and how much
    /// of which offer it goes on behind.
    pub(super) fn planned(&self, slot: usize, steers: bool) -> Option<(usize, Option<(usize, usize)>)> {
        let number = self.number(slot)?;
        let planned = self.plan.drafts.get(number)?;
        let limit = if steers { planned.limit } else { planned.limit.min(planned.aim) };
        Some((limit, self.behind.get(number).copied().flatten()))
    }

    /// Decides what is verified: for each text which of its offers, and how many tokens of it.
    pub(super) fn choose<'o>(
        &mut self,
        offers: impl Iterator<Item = &'o Offers> + Clone,
    ) -> Vec<Option<(usize, usize)>> {
        let Self { controller, sequences, choice, .. } = self;
        let chains = chains(offers.clone());
        controller.choose(sequences, &chains, choice);
        numbered(offers, choice.picks.iter()).collect()
    }

    /// Tells the controller what came of a round.
    pub(super) fn observe(
        &mut self,
        verified: &[Verified<'_>],
        verify: Duration,
        sample: Duration,
        rollback: Duration,
    ) {
        let Self { controller, sequences, costly, .. } = self;
        let drafters = costly.as_slice();
        controller.observe(&Outcome { sequences, verified, drafters, verify, sample, rollback });
    }
}

fn controller(settings: ControlSettings, drafters: &[(Source, DrafterSpec)], costs: Costs) -> Controller {
    let specs: Vec<DrafterSpec> = drafters.iter().map(|(_, spec)| spec.clone()).collect();
    Controller::new(settings, &specs, costs)
}

/// Chains are numbered over all texts, offers in each: which of its offers is picked for each text, and how many tokens of it.
fn numbered<'o, 'p>(
    offers: impl Iterator<Item = &'o Offers>,
    picks: impl Iterator<Item = &'p Pick>,
) -> impl Iterator<Item = Option<(usize, usize)>> {
    let mut before = 0;
    offers.zip(picks).map(move |(offers, pick)| {
        let first = before;
        before += offers.iter().count();
        Some((pick.chain?.checked_sub(first)?, pick.length)).filter(|(_, length)| *length > 0)
    })
}

fn chains<'o>(offers: impl Iterator<Item = &'o Offers>) -> Vec<Chain<'o>> {
    let of = |(sequence, offers): (usize, &'o Offers)| {
        offers.iter().map(move |offer| Chain { sequence, guesses: &offer.guesses })
    };
    offers.enumerate().flat_map(of).collect()
}

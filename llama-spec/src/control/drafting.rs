//! While something is drafted: how far a draft goes, and which drafters keep up with the target.

use super::acceptance::bias;
use super::chain::Evidence;
use super::controller::Controller;
use super::filling::HOPELESS;
use super::plan::Plan;
use super::round::Mode;

impl Controller {
    /// Whether a text that has drafted the token at a position (from 0) with this evidence goes on to the next. The tokens that it
    /// goes on behind are counted.
    pub fn go_on(&mut self, sequence: usize, position: usize, evidence: Evidence) -> bool {
        let Some(drafter) = self.round.drafter else { return false };
        let others: usize = self
            .round
            .texts
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != sequence)
            .map(|(_, text)| 1 + text.aim)
            .sum();
        let Some(text) = self.round.texts.get_mut(sequence) else { return false };
        let (model, bias) = (&self.models[drafter], bias(&self.biases, text.slot, drafter));
        text.survival *= model.told(bias, position, evidence);
        let drafted = position + 1;
        text.aim = text.aim.max(drafted);
        if drafted >= text.limit {
            return false;
        }
        if matches!(self.round.mode, Mode::Try { .. }) {
            return true;
        }
        let (mut survival, mut gain, limit) = (text.survival, 0.0, text.limit);
        // A step of the staircase may be worth climbing only as a whole.
        for more in 1..=limit - drafted {
            survival *= model.blind(bias, drafted + more - 1);
            if survival < HOPELESS {
                break;
            }
            gain += survival;
            let rows = others + 1 + drafted;
            let extra = self.round.rows_time(rows + more) - self.round.rows_time(rows) + self.round.step * more as f64;
            if gain > self.round.price * extra {
                return true;
            }
        }
        false
    }

    pub(super) fn decide_who_follows(&mut self, plan: &mut Plan) {
        plan.follow.clear();
        for (index, (usage, spec)) in self.usages.iter_mut().zip(&self.specs).enumerate() {
            if plan.drafter == Some(index) {
                usage.resume();
                for text in &self.round.texts {
                    if let Some(bias) = self.biases.get_mut(text.slot).and_then(|biases| biases.get_mut(index)) {
                        bias.missed = 0;
                    }
                }
            } else if spec.pausable && spec.kind.costs() && usage.may_rest() {
                usage.paused = true;
            }
            plan.follow.push(spec.kind.costs() && !usage.paused);
        }
    }
}

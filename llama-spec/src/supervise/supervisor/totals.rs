//! The numbers of all engines there were, so that none of them ever goes down.

use crate::engine::EngineStats;

/// The numbers of the present engine, and of those before it.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    earlier: EngineStats,
    present: EngineStats,
}

impl Totals {
    /// Takes the numbers of the present engine. Numbers that are lower than the last ones are those of a new one.
    pub(super) fn note(&mut self, stats: EngineStats) {
        if counts(&stats).iter().zip(counts(&self.present)).any(|(new, old)| *new < old) {
            self.ended();
        }
        self.present = stats;
    }

    /// The present engine is gone.
    pub(super) fn ended(&mut self) {
        let present = std::mem::take(&mut self.present);
        self.earlier = sum(&self.earlier, present);
        let now = &mut self.earlier;
        (now.queued, now.running) = (0, 0);
        now.slots.iter_mut().for_each(|slot| (slot.busy, slot.tokens) = (false, 0));
    }

    /// The numbers of the present engine alone.
    pub(super) fn present(&self) -> &EngineStats {
        &self.present
    }

    /// All numbers together; what is now is that of the present engine.
    pub(super) fn all(&self) -> EngineStats {
        sum(&self.earlier, self.present.clone())
    }
}

/// What only grows while an engine lives.
fn counts(stats: &EngineStats) -> [u64; 8] {
    [
        stats.decodes,
        stats.finished,
        stats.cancelled,
        stats.failed,
        stats.refused,
        stats.total.prompt_tokens,
        stats.total.generated_tokens,
        stats.total.drafted,
    ]
}

fn sum(earlier: &EngineStats, mut present: EngineStats) -> EngineStats {
    present.total.add(&earlier.total);
    for (index, slot) in earlier.slots.iter().enumerate() {
        match present.slots.get_mut(index) {
            Some(now) => now.stats.add(&slot.stats),
            None => present.slots.push(slot.clone()),
        }
    }
    for (mine, others) in [
        (&mut present.finished, earlier.finished),
        (&mut present.cancelled, earlier.cancelled),
        (&mut present.expired, earlier.expired),
        (&mut present.failed, earlier.failed),
        (&mut present.refused, earlier.refused),
        (&mut present.preempted, earlier.preempted),
        (&mut present.decodes, earlier.decodes),
        (&mut present.decoded_slots, earlier.decoded_slots),
        (&mut present.steps, earlier.steps),
    ] {
        *mine = mine.saturating_add(others);
    }
    present.queue_times.add(&earlier.queue_times);
    present.times_to_first_token.add(&earlier.times_to_first_token);
    present.longest_step = present.longest_step.max(earlier.longest_step);
    present.plain_token = present.plain_token.or(earlier.plain_token);
    present
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::SlotStats;
    use proptest::prelude::*;

    fn stats(tokens: u64, running: u64) -> EngineStats {
        let mut stats = EngineStats { finished: tokens / 3, running, ..EngineStats::default() };
        stats.total.generated_tokens = tokens;
        let mut slot = SlotStats { busy: running > 0, tokens: 5, ..SlotStats::default() };
        slot.stats.generated_tokens = tokens;
        stats.slots.push(slot);
        stats
    }

    proptest! {
        /// Engines come and go, announced or not: nothing is counted twice, and nothing goes down.
        #[test]
        fn counts_never_go_down(engines in proptest::collection::vec((proptest::collection::vec(0u64..50, 1..6), any::<bool>()), 1..6)) {
            let (mut totals, mut last, mut expected) = (Totals::default(), 0, 0);
            for (steps, announced) in engines {
                // One that is not announced is known by its numbers, which begin at nothing.
                let mut tokens = 0;
                totals.note(stats(0, 0));
                for step in steps {
                    tokens += step + 1;
                    totals.note(stats(tokens, 1));
                    let all = totals.all();
                    prop_assert!(all.total.generated_tokens >= last);
                    prop_assert_eq!(all.total.generated_tokens, expected + tokens);
                    prop_assert_eq!(all.slots[0].stats.generated_tokens, expected + tokens);
                    prop_assert_eq!(all.running, 1);
                    last = all.total.generated_tokens;
                }
                expected += tokens;
                if announced {
                    totals.ended();
                    let all = totals.all();
                    prop_assert_eq!((all.total.generated_tokens, all.running, all.slots[0].busy), (expected, 0, false));
                }
            }
        }
    }
}

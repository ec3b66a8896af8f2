//! When a worker is taken for stuck: it has something to do and gets nowhere, or it is not heard of at all.
//!
//! What counts is progress of the work and never an answer to a ping: a worker can be busy for long, and one whose engine hangs
//! still answers. How long it may take is measured by the engine itself:
//!
//! | what it should be doing | what counts | the limit |
//! |---|---|---|
//! | loading | progress of loading | [`Patience::loading`]: devices prepare their kernels in silence |
//! | working | steps of the engine, and whatever the caller saw of its work | the largest of three: [`Patience::floor`]; [`Patience::slower`] times the longest step so far; a whole piece of a prompt at the speed of single tokens, twice |
//! | nothing | any message | as for working |
//!
//! The last of the three is there for the first long prompt of a slow machine, when no step was long yet: computing tokens together
//! never takes longer than one by one. Only time that somebody watched counts, [`BLINK`] between two looks at most: when the machine
//! was asleep or this process was stopped, the worker was, too.

use crate::engine::EngineStats;
use std::time::{Duration, Instant};

/// As much time as passes at most between two looks, as far as the worker is concerned.
const BLINK: Duration = Duration::from_secs(5);

/// How patient a [`Watch`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    /// Any step may take so long. Default: half a minute.
    pub(crate) floor: Duration,
    /// A step may take so many times as long as the longest one so far. Default: 10.
    pub(crate) slower: u32,
    /// Loading may stand still for so long. Default: 10 minutes.
    pub(crate) loading: Duration,
    /// The most tokens of a prompt that one step computes: the context's micro-batch.
    pub(crate) piece: u32,
}

impl Default for Patience {
    fn default() -> Self {
        Self { floor: Duration::from_secs(30), slower: 10, loading: Duration::from_secs(600), piece: 512 }
    }
}

impl Patience {
    /// With another floor. Loading gets twenty times as much.
    pub(crate) fn floor(floor: Duration) -> Self {
        Self { floor, loading: floor.saturating_mul(20), ..Self::default() }
    }
}

/// What a worker should be doing, as its supervisor knows: it is stuck also when it says that it has nothing to do and is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    Loading,
    /// There are texts that run or wait, or a check is awaited.
    Working,
    Nothing,
}

/// Watches one worker.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    patience: Patience,
    duty: Duty,
    /// Steps of the engine, when last heard of.
    steps: u64,
    longest_step: Duration,
    plain_token: Duration,
    /// For how long it got nowhere, as far as it was watched.
    standstill: Duration,
    /// For how long it was not heard of.
    silence: Duration,
    looked: Instant,
}

impl Watch {
    /// For a worker that was just started, to load something.
    pub(crate) fn new(patience: Patience, now: Instant) -> Self {
        Self {
            patience,
            duty: Duty::Loading,
            steps: 0,
            longest_step: Duration::ZERO,
            plain_token: Duration::ZERO,
            standstill: Duration::ZERO,
            silence: Duration::ZERO,
            looked: now,
        }
    }

    /// It says something, whatever it is.
    pub(crate) fn heard(&mut self, now: Instant) {
        self.pass(now);
        self.silence = Duration::ZERO;
    }

    /// It gets on: loading goes on, or a part of an answer comes.
    pub(crate) fn progress(&mut self, now: Instant) {
        self.heard(now);
        self.standstill = Duration::ZERO;
    }

    /// It tells its numbers. They begin anew with another engine.
    pub(crate) fn pulse(&mut self, stats: &EngineStats, now: Instant) {
        self.heard(now);
        if stats.steps != self.steps {
            self.steps = stats.steps;
            self.standstill = Duration::ZERO;
        }
        self.longest_step = stats.longest_step;
        self.plain_token = stats.plain_token.unwrap_or_default();
    }

    /// It should be doing this from now on. What it got nowhere with before does not count for something else.
    pub(crate) fn should(&mut self, duty: Duty, now: Instant) {
        self.pass(now);
        if self.duty != duty {
            self.duty = duty;
            self.standstill = Duration::ZERO;
        }
    }

    /// How it is taken for stuck, if it is; else to be asked again until [`Watch::due`].
    pub(crate) fn look(&mut self, now: Instant) -> Option<String> {
        self.pass(now);
        let limit = self.limit();
        let lasted = self.lasted();
        (lasted >= limit).then(|| match self.duty {
            Duty::Loading => format!("loading stood still for {lasted:.0?}"),
            Duty::Working if self.silence < self.standstill => format!("the worker made no progress for {lasted:.0?}"),
            Duty::Working | Duty::Nothing => format!("the worker was silent for {lasted:.0?}"),
        })
    }

    /// When to look next; earlier does no harm.
    pub(crate) fn due(&self) -> Instant {
        let left = self.limit().saturating_sub(self.lasted()).clamp(Duration::from_millis(1), BLINK);
        self.looked.checked_add(left).unwrap_or(self.looked)
    }

    /// How long it may get nowhere now.
    pub(crate) fn limit(&self) -> Duration {
        let Patience { floor, slower, loading, piece } = self.patience;
        match self.duty {
            Duty::Loading => loading,
            Duty::Working | Duty::Nothing => {
                let prompt = self.plain_token.saturating_mul(piece).saturating_mul(2);
                floor.max(self.longest_step.saturating_mul(slower)).max(prompt)
            }
        }
    }

    fn lasted(&self) -> Duration {
        match self.duty {
            Duty::Loading => self.standstill,
            // Whoever is silent does not tell of progress either.
            Duty::Working => self.standstill.max(self.silence),
            Duty::Nothing => self.silence,
        }
    }

    fn pass(&mut self, now: Instant) {
        let watched = now.saturating_duration_since(self.looked).min(BLINK);
        self.looked = self.looked.max(now);
        self.standstill = self.standstill.saturating_add(watched);
        self.silence = self.silence.saturating_add(watched);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn stats(steps: u64, longest_step: Duration) -> EngineStats {
        EngineStats { steps, longest_step, ..EngineStats::default() }
    }

    /// A worker that has loaded and works.
    fn working(patience: Patience) -> (Watch, Instant) {
        let start = Instant::now();
        let mut watch = Watch::new(patience, start);
        watch.should(Duty::Working, start);
        (watch, start)
    }

    /// Looks every second from then on; after how many seconds it is stuck.
    fn stuck_after(watch: &mut Watch, start: Instant, mut tell: impl FnMut(&mut Watch, u32, Instant)) -> Option<u32> {
        (1..10_000).find(|second| {
            let now = start + SECOND * *second;
            tell(watch, *second, now);
            watch.look(now).is_some()
        })
    }

    #[test]
    fn busy_is_not_stuck() {
        let (mut watch, start) = working(Patience::floor(5 * SECOND));
        assert_eq!(
            stuck_after(&mut watch, start, |watch, second, now| {
                watch.pulse(&stats((second / 4).into(), SECOND / 10), now);
            }),
            None
        );
    }

    #[test]
    fn an_answer_to_a_ping_is_no_progress() {
        let (mut watch, start) = working(Patience::floor(5 * SECOND));
        let after = stuck_after(&mut watch, start, |watch, second, now| {
            watch.pulse(&stats(second.min(100).into(), SECOND / 10), now);
        });
        assert_eq!(after, Some(105));
        assert_eq!(watch.look(start + 105 * SECOND).unwrap(), "the worker made no progress for 5s");
    }

    #[test]
    fn with_nothing_to_do_only_silence_counts() {
        let (mut watch, start) = working(Patience::floor(5 * SECOND));
        watch.should(Duty::Nothing, start);
        let after = stuck_after(&mut watch, start, |watch, second, now| {
            if second <= 100 {
                watch.heard(now);
            }
        });
        assert_eq!(after, Some(105));
        assert_eq!(watch.look(start + 105 * SECOND).unwrap(), "the worker was silent for 5s");
    }

    #[test]
    fn work_after_a_long_rest_is_not_late() {
        let (mut watch, start) = working(Patience::floor(5 * SECOND));
        watch.should(Duty::Nothing, start);
        assert_eq!(
            stuck_after(&mut watch, start, |watch, second, now| {
                watch.heard(now);
                if second == 1000 {
                    watch.should(Duty::Working, now);
                }
            }),
            Some(1005)
        );
    }

    #[test]
    fn slow_engines_get_more() {
        let (mut watch, start) = working(Patience::floor(5 * SECOND));
        watch.pulse(&stats(1, 3 * SECOND), start);
        assert_eq!(watch.limit(), 30 * SECOND);
        // Nothing was slow yet, and a prompt of many tokens may come.
        watch.pulse(&EngineStats { plain_token: Some(SECOND / 10), ..stats(2, SECOND / 10) }, start);
        assert_eq!(watch.limit(), SECOND * 1024 / 10);
        assert_eq!(stuck_after(&mut watch, start, |_, _, _| {}), Some(103));
    }

    #[test]
    fn loading_has_its_own_limit() {
        let (start, patience) = (Instant::now(), Patience::floor(5 * SECOND));
        let mut watch = Watch::new(patience, start);
        let after = stuck_after(&mut watch, start, |watch, second, now| match second {
            ..=200 if second % 90 == 0 => watch.progress(now),
            _ => watch.heard(now),
        });
        assert_eq!(after, Some(180 + 100));
        assert_eq!(watch.look(start + 280 * SECOND).unwrap(), "loading stood still for 100s");
    }

    #[test]
    fn time_that_nobody_watched_does_not_count() {
        let (mut watch, start) = working(Patience::default());
        assert_eq!(watch.look(start + 10_000 * SECOND), None, "the machine was asleep");
        let woken = start + 10_000 * SECOND;
        assert_eq!(stuck_after(&mut watch, woken, |_, _, _| {}), Some(25));
    }

    #[test]
    fn senseless_numbers_do_no_harm() {
        let (mut watch, start) = working(Patience { floor: Duration::MAX, slower: u32::MAX, ..Patience::default() });
        watch.pulse(&EngineStats { plain_token: Some(Duration::MAX), ..stats(1, Duration::MAX) }, start);
        assert!(watch.due() > start && watch.look(watch.due()).is_none());
        let (mut watch, start) = working(Patience::floor(Duration::ZERO));
        assert!(watch.due() > start && watch.look(start).is_some());
    }

    proptest! {
        /// Whoever gets on within the limit is left alone, however irregularly it is looked at.
        #[test]
        fn nobody_who_gets_on_is_taken_for_stuck(
            gaps in prop::collection::vec((1u64..29_000, 0u8..4), 1..100),
        ) {
            let (mut watch, mut now) = working(Patience::default());
            let (mut steps, mut rested) = (0, 0);
            for (milliseconds, what) in gaps {
                now += Duration::from_millis(milliseconds);
                rested += milliseconds;
                if what == 0 || rested >= 29_000 {
                    (steps, rested) = (steps + 1, 0);
                    watch.pulse(&stats(steps, SECOND), now);
                } else if what == 1 {
                    watch.progress(now);
                    rested = 0;
                } else if rested < 30_000 {
                    prop_assert_eq!(watch.look(now), None);
                }
                prop_assert!(watch.due() > now && watch.due() <= now + BLINK);
            }
        }
    }
}

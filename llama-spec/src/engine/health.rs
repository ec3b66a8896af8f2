//! How far a drafter is trusted after it has failed.
//!
//! | state | a failure | good rounds |
//! |---|---|---|
//! | well | the drafter is reset, on probation | |
//! | on probation | off, each time twice as long | after [`PROBATION`] it is well |
//! | off | stays off | there are none; after its time it is on probation |
//!
//! [`FORGIVEN`] good rounds in a row make everything as it was before the first failure.

use std::time::{Duration, Instant};

/// Good rounds after which another failure is taken as a new one.
pub(crate) const PROBATION: u32 = 8;
/// Good rounds after which earlier failures are forgotten.
pub(crate) const FORGIVEN: u32 = 256;
/// How long a drafter is off the first time.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// How long it is off at most.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What to do about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cure {
    /// The draft of this round is lost; reset the drafter and show it the text again.
    Reset,
    /// Do not ask the drafter until then.
    Off {
        /// The end of the pause.
        until: Instant,
    },
}

/// The state of one drafter.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    /// Good rounds since the last failure or pause; without a failure they are not counted.
    good: u32,
    trust: Trust,
    /// How long the next pause is.
    pause: Duration,
    /// Why it failed last.
    reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    Well,
    Probation,
    Off { until: Instant },
}

impl Default for Health {
    fn default() -> Self {
        Self { good: 0, trust: Trust::Well, pause: FIRST_PAUSE, reason: None }
    }
}

impl Health {
    /// Notes a failure and says what to do. A failure while the drafter is off changes nothing but the reason.
    pub(crate) fn failed(&mut self, reason: String, now: Instant) -> Cure {
        self.reason = Some(reason);
        self.good = 0;
        let until = match self.trust {
            Trust::Well => {
                self.trust = Trust::Probation;
                return Cure::Reset;
            }
            Trust::Off { until } => until,
            Trust::Probation => {
                let until = now + self.pause;
                self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                until
            }
        };
        self.trust = Trust::Off { until };
        Cure::Off { until }
    }

    /// Notes a round in which the drafter did what it should, with or without a draft.
    pub(crate) fn worked(&mut self) {
        if self.reason.is_none() || self.is_off() {
            return;
        }
        self.good += 1;
        if self.good >= PROBATION {
            self.trust = Trust::Well;
        }
        if self.good >= FORGIVEN {
            *self = Self::default();
        }
    }

    /// Whether it may be asked for a draft. Once its pause is over it may, and is on probation. It has not followed the text
    /// while it was off: the caller that saw [`Health::is_off`] before resets it and shows it the text again.
    pub(crate) fn may_draft(&mut self, now: Instant) -> bool {
        if let Trust::Off { until } = self.trust {
            if now < until {
                return false;
            }
            self.trust = Trust::Probation;
        }
        true
    }

    /// Whether it is off; stays so after the pause until [`Health::may_draft`] is asked.
    pub(crate) fn is_off(&self) -> bool {
        matches!(self.trust, Trust::Off { .. })
    }

    /// Why it failed last, while it is off or on probation.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.reason.as_deref().filter(|_| self.trust != Trust::Well)
    }

    /// When it is tried again, while it is off.
    pub(crate) fn retry_at(&self) -> Option<Instant> {
        match self.trust {
            Trust::Off { until } => Some(until),
            Trust::Well | Trust::Probation => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What happens, and what is expected of it. Times in seconds from the start.
    #[derive(Debug)]
    enum Step {
        FailsAt(u64, Expected),
        Works(u32),
        MayDraft(u64, bool),
    }

    #[derive(Debug, PartialEq)]
    enum Expected {
        Reset,
        OffUntil(u64),
    }

    use Expected::{OffUntil, Reset};
    use Step::{FailsAt, MayDraft, Works};

    #[test]
    fn the_ladder() {
        let table: &[(&str, &[Step])] = &[
            ("one failure is healed by a reset", &[MayDraft(0, true), FailsAt(0, Reset), MayDraft(0, true)]),
            (
                "a second failure in the next rounds switches off",
                &[FailsAt(0, Reset), Works(7), FailsAt(5, OffUntil(6)), MayDraft(5, false), MayDraft(6, true)],
            ),
            ("a failure after the probation is a first one", &[FailsAt(0, Reset), Works(8), FailsAt(5, Reset)]),
            (
                "pauses double up to a minute",
                &[
                    FailsAt(0, Reset),
                    FailsAt(0, OffUntil(1)),
                    MayDraft(1, true),
                    FailsAt(1, OffUntil(3)),
                    MayDraft(3, true),
                    FailsAt(3, OffUntil(7)),
                    MayDraft(7, true),
                    FailsAt(7, OffUntil(15)),
                    MayDraft(15, true),
                    FailsAt(15, OffUntil(31)),
                    MayDraft(31, true),
                    FailsAt(31, OffUntil(63)),
                    MayDraft(63, true),
                    FailsAt(63, OffUntil(123)),
                    MayDraft(123, true),
                    FailsAt(200, OffUntil(260)),
                ],
            ),
            (
                "a trial that goes well does not shorten the next pause",
                &[
                    FailsAt(0, Reset),
                    FailsAt(0, OffUntil(1)),
                    MayDraft(1, true),
                    Works(255),
                    FailsAt(9, Reset),
                    FailsAt(9, OffUntil(11)),
                ],
            ),
            (
                "a long good time forgets everything",
                &[
                    FailsAt(0, Reset),
                    FailsAt(0, OffUntil(1)),
                    MayDraft(1, true),
                    Works(256),
                    FailsAt(9, Reset),
                    FailsAt(9, OffUntil(10)),
                ],
            ),
            (
                "good rounds from before a failure do not count",
                &[
                    FailsAt(0, Reset),
                    Works(7),
                    FailsAt(1, OffUntil(2)),
                    MayDraft(2, true),
                    Works(7),
                    FailsAt(3, OffUntil(5)),
                ],
            ),
            (
                "what happens while it is off does not move the pause",
                &[
                    FailsAt(0, Reset),
                    FailsAt(0, OffUntil(1)),
                    FailsAt(0, OffUntil(1)),
                    Works(300),
                    MayDraft(0, false),
                    MayDraft(1, true),
                    FailsAt(1, OffUntil(3)),
                ],
            ),
        ];
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        for (name, steps) in table {
            let mut health = Health::default();
            for step in *steps {
                match step {
                    FailsAt(now, expected) => {
                        let cure = match health.failed(format!("at {now}"), at(*now)) {
                            Cure::Reset => Reset,
                            Cure::Off { until } => OffUntil((until - start).as_secs()),
                        };
                        assert_eq!(&cure, expected, "{name}: {step:?}");
                        assert_eq!(health.reason(), Some(format!("at {now}").as_str()), "{name}");
                        assert_eq!(health.retry_at().is_some(), cure != Reset, "{name}");
                    }
                    Works(rounds) => (0..*rounds).for_each(|_| health.worked()),
                    MayDraft(now, expected) => {
                        assert_eq!(health.may_draft(at(*now)), *expected, "{name}: {step:?}");
                        assert_eq!(health.is_off(), !expected, "{name}: {step:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_reason_is_told_until_it_is_well() {
        let mut health = Health::default();
        assert_eq!(health.reason(), None);
        health.failed("broken".into(), Instant::now());
        (0..PROBATION - 1).for_each(|_| health.worked());
        assert_eq!(health.reason(), Some("broken"));
        health.worked();
        assert_eq!(health.reason(), None);
    }

    proptest! {
        /// Whatever happens, a drafter comes back within a minute, and is never off without a reason.
        #[test]
        fn no_drafter_is_off_for_ever(steps in proptest::collection::vec((0u8..3, 0u64..100_000), 0..200)) {
            let mut health = Health::default();
            let mut now = Instant::now();
            for (step, milliseconds) in steps {
                now += Duration::from_millis(milliseconds);
                match step {
                    0 => _ = health.failed("why".into(), now),
                    1 => health.worked(),
                    _ => _ = health.may_draft(now),
                }
                prop_assert_eq!(health.is_off(), health.retry_at().is_some());
                prop_assert!(!health.is_off() || health.reason().is_some());
                prop_assert!(health.retry_at().is_none_or(|until| until <= now + LONGEST_PAUSE));
            }
            prop_assert!(health.may_draft(now + LONGEST_PAUSE));
        }
    }
}

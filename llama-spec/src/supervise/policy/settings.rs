//! How patient a recovery is.

use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// The numbers of a [`Recovery`](super::Recovery).
///
/// ```
/// use llama_spec::supervise::policy::Policy;
/// let policy: Policy = serde_json::from_str(r#"{ "crashes": 2 }"#)?;
/// assert_eq!(policy.crashes, 2);
/// assert_eq!(policy.pause_factor, Policy::default().pause_factor);
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Policy {
    /// So many breakdowns within [`Policy::window`] are answered with another worker; with one more it is given up. 0 never starts
    /// another. Default: 5.
    pub crashes: u32,
    /// How long a breakdown counts. Default: 10 minutes.
    pub window: Duration,
    /// The pause after the second breakdown within the window; after the first there is none. Default: 1 second.
    pub first_pause: Duration,
    /// Each further pause is so many times as long; less than 1, and what is no number, count as 1. Default: 2.
    pub pause_factor: f64,
    /// No pause is longer. Default: 1 minute.
    pub longest_pause: Duration,
    /// What was taken from a load is tried again when it has served well for so long without. It doubles each time that does not
    /// work. Default: 10 minutes.
    pub period: Duration,
    /// It does not become longer. Default: a day.
    pub longest_period: Duration,
    /// How long a worker may take to end: then it is killed, and after as long again it is taken for gone. Default: 10 seconds.
    pub farewell: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        const MINUTE: Duration = Duration::from_secs(60);
        Self {
            crashes: 5,
            window: 10 * MINUTE,
            first_pause: Duration::from_secs(1),
            pause_factor: 2.0,
            longest_pause: MINUTE,
            period: 10 * MINUTE,
            longest_period: 24 * 60 * MINUTE,
            farewell: Duration::from_secs(10),
        }
    }
}

impl Policy {
    /// The pause after this breakdown of those that count, from 1.
    pub(super) fn pause(&self, breakdown: usize) -> Duration {
        let Some(doubled) = breakdown.checked_sub(2) else { return Duration::ZERO };
        let factor = if self.pause_factor >= 1.0 { self.pause_factor } else { 1.0 };
        let longer = factor.powi(doubled.try_into().unwrap_or(i32::MAX));
        let pause = Duration::try_from_secs_f64(self.first_pause.as_secs_f64() * longer);
        pause.unwrap_or(self.longest_pause).min(self.longest_pause)
    }

    /// The period after one that did not go well.
    pub(super) fn longer(&self, period: Duration) -> Duration {
        period.saturating_mul(2).min(self.longest_period.max(self.period))
    }
}

/// When the breakdowns were that still count.
#[derive(Clone, Debug, Default)]
pub(super) struct Breakdowns(Vec<Instant>);

impl Breakdowns {
    /// Notes one. The pause before the next worker, or nothing if there were too many.
    pub(super) fn note(&mut self, policy: &Policy, now: Instant) -> Option<Duration> {
        self.0.retain(|at| now.saturating_duration_since(*at) < policy.window);
        self.0.push(now);
        let allowed = self.0.len() <= policy.crashes.try_into().unwrap_or(usize::MAX);
        allowed.then(|| policy.pause(self.0.len()))
    }

    /// How many there were when the last was noted.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }
}

/// A time after another; a century stands for what no clock holds.
pub(super) fn after(now: Instant, wait: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    now.checked_add(wait.min(CENTURY)).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_longest() {
        let policy = Policy::default();
        let seconds: Vec<u64> = (0..10).map(|breakdown| policy.pause(breakdown).as_secs()).collect();
        assert_eq!(seconds, [0, 0, 1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(policy.pause(usize::MAX), policy.longest_pause);
    }

    #[test]
    fn senseless_numbers_do_no_harm() {
        for factor in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, 1e300] {
            for first_pause in [Duration::ZERO, Duration::MAX] {
                let policy = Policy { pause_factor: factor, first_pause, ..Policy::default() };
                (0..100).for_each(|breakdown| assert!(policy.pause(breakdown) <= policy.longest_pause));
            }
        }
        let now = Instant::now();
        assert!(after(now, Duration::MAX) > now);
        let policy = Policy { longest_period: Duration::ZERO, ..Policy::default() };
        assert_eq!(policy.longer(policy.period), policy.period);
        let policy = Policy { longest_period: Duration::MAX, ..Policy::default() };
        assert_eq!(policy.longer(Duration::MAX), Duration::MAX);
    }

    #[test]
    fn breakdowns_are_forgotten_after_the_window() {
        let policy = Policy { crashes: 2, ..Policy::default() };
        let (mut breakdowns, start) = (Breakdowns::default(), Instant::now());
        let mut note = |minutes: u64| breakdowns.note(&policy, start + Duration::from_secs(60 * minutes));
        assert_eq!(note(0), Some(Duration::ZERO));
        assert_eq!(note(9), Some(Duration::from_secs(1)));
        assert_eq!(note(10), Some(Duration::from_secs(1)), "the first is ten minutes ago");
        assert_eq!(note(11), None);
    }

    #[test]
    fn misspelt_settings_are_refused() {
        assert!(serde_json::from_str::<Policy>(r#"{ "crash": 2 }"#).is_err());
        let json = serde_json::to_string(&Policy::default()).unwrap();
        assert_eq!(serde_json::from_str::<Policy>(&json).unwrap(), Policy::default());
    }
}

//! What an engine does and has done, in numbers.

use crate::control::{Account, DrafterAccount, DrafterState};
use crate::lookup::StoreStats;
use crate::spec::{Histogram, Source, Speculation, Stats};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Counts and times of an engine since it was made, and what it is doing now.
///
/// It prints as a table for people; [`EngineStats::prometheus`] is for monitoring.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct EngineStats {
    /// The numbers of all requests added up, those that run now included.
    pub total: Stats,
    /// The slots, by their index.
    pub slots: Vec<SlotStats>,
    /// Requests that wait now.
    pub queued: u64,
    /// Requests that run now.
    pub running: u64,
    /// Requests that ran to their end.
    pub finished: u64,
    /// Requests that were cancelled.
    pub cancelled: u64,
    /// Requests whose deadline was over before they ended.
    pub expired: u64,
    /// Requests that ended with an error.
    pub failed: u64,
    /// Requests that were refused because the queue was full.
    pub refused: u64,
    /// Times a running request lost its slot and was queued again.
    pub preempted: u64,
    /// Batches that the target decoded.
    pub decodes: u64,
    /// Slots in these batches, added up: by `decodes`, how many slots share a batch on average.
    pub decoded_slots: u64,
    /// Steps of the engine: each computes a piece of a prompt, a round, or both. It stands still when the engine is idle, or hangs.
    pub steps: u64,
    /// The longest of these steps.
    pub longest_step: Duration,
    /// Times requests waited to be started.
    pub queue_times: Histogram,
    /// Times from a request to its first token, the wait included.
    pub times_to_first_token: Histogram,
    /// How long the target alone takes for a token of one slot, as measured.
    pub plain_token: Option<Duration>,
    /// What speculation came to.
    pub speculation: Speculation,
    /// How all of it compares with plain decoding, and what may be lost.
    pub account: Account,
    /// Whom [`Account::drafters`] are about.
    pub drafters: Vec<Source>,
    /// The texts that are kept for lookup, if they are.
    pub store: Option<StoreStats>,
}

/// One slot of an engine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SlotStats {
    /// Whether a request runs in it.
    pub busy: bool,
    /// Tokens it holds in memory.
    pub tokens: u64,
    /// The numbers of all requests that ran in it, added up.
    pub stats: Stats,
}

impl EngineStats {
    /// How many times as fast as without speculation all requests were together: by the controller's
    /// [account](field@Self::account) where it decided, else as [`Stats::speedup`] says. Nothing where it did not and slots shared
    /// batches, which is faster than the target alone without any speculation.
    pub fn speedup(&self) -> Option<f64> {
        let alone = || self.total.speedup(self.plain_token?).filter(|_| self.decoded_slots <= self.decodes);
        self.account.speedup().or_else(alone)
    }

    /// The drafters, and how the controller uses them.
    pub fn drafter_accounts(&self) -> impl Iterator<Item = (Source, &DrafterAccount)> {
        self.drafters.iter().copied().zip(&self.account.drafters)
    }

    /// How many slots share a batch on average.
    pub fn slots_per_decode(&self) -> Option<f64> {
        (self.decodes > 0).then(|| self.decoded_slots as f64 / self.decodes as f64)
    }
}

impl fmt::Display for EngineStats {
    /// A few lines for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "requests     {} running, {} queued, {} finished", self.running, self.queued, self.finished)?;
        let rare = [
            (self.cancelled, "cancelled"),
            (self.expired, "expired"),
            (self.failed, "failed"),
            (self.refused, "refused"),
            (self.preempted, "preempted"),
        ];
        let rare: Vec<String> =
            rare.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        if !rare.is_empty() {
            writeln!(f, "             {}", rare.join(", "))?;
        }
        writeln!(f, "all          {}", self.total)?;
        writeln!(f, "speculation  {}", Told(self))?;
        if self.account.tokens > 0 {
            writeln!(f, "controller   {}", Controlled(self))?;
        }
        if let Some(store) = &self.store {
            let StoreStats { tokens, bytes, saved, .. } = store;
            writeln!(
                f,
                "kept texts   {tokens} tokens in {:.1} MiB, {saved} guessed right",
                *bytes as f64 / f64::from(1 << 20)
            )?;
        }
        for (name, times) in [
            ("first token", &self.times_to_first_token),
            ("next token", &self.total.inter_token),
            ("queued for", &self.queue_times),
        ] {
            if let (Some(median), Some(slow)) = (times.quantile(0.5), times.quantile(0.95)) {
                writeln!(f, "{name:<12} {} in the median, {} for the slowest 5 %", Time(median), Time(slow))?;
            }
        }
        if let Some(slots) = self.slots_per_decode() {
            writeln!(f, "batches      {}, {slots:.2} slots each", self.decodes)?;
        }
        write!(
            f,
            "{:>4}  {:<4}  {:>9}  {:>9}  {:>8}  {:>8}",
            "slot", "is", "in memory", "generated", "drafted", "accepted"
        )?;
        for (index, slot) in self.slots.iter().enumerate() {
            let (is, stats) = (if slot.busy { "busy" } else { "free" }, &slot.stats);
            let accepted = stats.acceptance_rate().map_or("-".into(), |rate| format!("{:.0} %", rate * 100.0));
            write!(
                f,
                "\n{index:>4}  {is:<4}  {:>9}  {:>9}  {:>8}  {accepted:>8}",
                slot.tokens, stats.generated_tokens, stats.drafted
            )?;
        }
        Ok(())
    }
}

/// What speculation came to, and what it brought.
struct Told<'a>(&'a EngineStats);

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(stats) = self;
        let speculation = &stats.speculation;
        match speculation.is_active() {
            true => f.write_str(&speculation.drafters())?,
            false => f.write_str("off")?,
        }
        if let Some(reason) = &speculation.reason {
            write!(f, " ({reason})")?;
        }
        // What the controller makes of it is told behind.
        if let Some(speedup) = stats.speedup().filter(|_| stats.account.tokens == 0) {
            write!(f, ", {speedup:.2} times as fast as without")?;
        }
        match stats.total.failures {
            0 => Ok(()),
            failures => write!(f, ", {failures} drafts lost to failures"),
        }
    }
}

/// How the controller uses the drafters, and what it lost or gained.
struct Controlled<'a>(&'a EngineStats);

impl fmt::Display for Controlled<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let account = &self.0.account;
        match account.loss_share() {
            lost if lost > 0.0 => write!(f, "{:.1} % lost against plain decoding", lost * 100.0)?,
            _ => write!(f, "{:.2} times as fast as plain decoding", account.speedup().unwrap_or(1.0))?,
        }
        write!(f, ", {:.1} % may be lost", account.bound * 100.0)?;
        if account.closed {
            f.write_str(" (too much was lost of late, so nothing is drafted now)")?;
        }
        for (source, drafter) in self.0.drafter_accounts().filter(|(_, drafter)| drafter.drafted > 0) {
            let state = match drafter.state {
                DrafterState::Active => "",
                DrafterState::Idle { .. } => " (does not pay now)",
            };
            write!(f, "; {source} {} of {} accepted{state}", drafter.accepted, drafter.drafted)?;
        }
        Ok(())
    }
}

/// A duration with three digits.
struct Time(Duration);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs_f64();
        match seconds {
            _ if seconds < 0.1 => write!(f, "{:.1} ms", seconds * 1e3),
            _ if seconds < 1.0 => write!(f, "{:.0} ms", seconds * 1e3),
            _ => write!(f, "{seconds:.1} s"),
        }
    }
}

/// An engine in the middle of its work, for tests of what is shown.
#[cfg(test)]
pub(super) fn example() -> EngineStats {
    use crate::spec::{Method, Source};
    let mut first = Stats {
        prompt_tokens: 100,
        cached_tokens: 40,
        generated_tokens: 80,
        rounds: 30,
        failures: 2,
        prefill: Duration::from_millis(1500),
        generation: Duration::from_secs(4),
        ..Stats::default()
    };
    first.count_draft(&[Source::Drafted(Method::DraftSimple); 4], 3);
    first.count_draft(&[Source::Own(0); 2], 0);
    [1, 5, 5, 40, 200_000].into_iter().for_each(|time| first.inter_token.record(Duration::from_millis(time)));
    let mut times_to_first_token = Histogram::default();
    times_to_first_token.record(Duration::from_millis(420));
    let mut total = first.clone();
    total.add(&first);
    EngineStats {
        total,
        slots: vec![
            SlotStats { busy: true, tokens: 512, stats: first.clone() },
            SlotStats { busy: false, tokens: 0, stats: Stats::default() },
        ],
        queued: 3,
        running: 1,
        finished: 12,
        refused: 4,
        decodes: 10,
        decoded_slots: 15,
        times_to_first_token,
        plain_token: Some(Duration::from_millis(100)),
        speculation: Speculation {
            requested: vec![Method::DraftSimple, Method::NgramMod],
            effective: vec![Method::DraftSimple],
            reason: Some("\"ngram-mod\" is off:\na \\ in the text".into()),
            ..Speculation::default()
        },
        ..EngineStats::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_tells_what_people_ask() {
        let mut stats = example();
        stats.speculation.reason = None;
        let table = stats.to_string();
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0], "requests     1 running, 3 queued, 12 finished");
        assert_eq!(lines[1], "             4 refused");
        assert!(lines[2].starts_with("all          160 tokens, 20.0 tokens/s"), "{table}");
        assert_eq!(lines[3], "speculation  draft-simple, 4 drafts lost to failures");
        assert!(lines[4].starts_with("first token  ") && lines[5].starts_with("next token   "), "{table}");
        assert_eq!(lines[6], "batches      10, 1.50 slots each");
        assert_eq!(lines[7..].iter().map(|line| line.len()).collect::<Vec<_>>(), [lines[7].len(); 3], "{table}");
        assert_eq!(lines[8].split_whitespace().collect::<Vec<_>>(), ["0", "busy", "512", "80", "6", "50", "%"]);
    }

    #[test]
    fn slots_that_share_batches_are_no_speculation() {
        let mut stats = example();
        assert_eq!(stats.speedup(), None);
        stats.decoded_slots = stats.decodes;
        assert_eq!(stats.speedup(), Some(2.0));
        assert!(stats.to_string().contains(", 2.00 times as fast as without, 4 drafts lost"), "{stats}");
        let (time, plain) = (Duration::from_secs(4), Duration::from_secs(5));
        stats.account = Account { time, plain, tokens: 160, ..Account::default() };
        assert_eq!(stats.speedup(), Some(1.25));
        let table = stats.to_string();
        assert!(table.contains("controller   1.25 times as fast") && !table.contains("as fast as without"), "{table}");
    }

    #[test]
    fn an_engine_that_did_nothing_shows_no_rates() {
        let table = EngineStats::default().to_string();
        assert!(table.contains("speculation  off\n") && !table.contains("NaN"), "{table}");
        assert_eq!(table.lines().count(), 4, "{table}");
    }

    #[test]
    fn numbers_survive_json() {
        let stats = example();
        let json = serde_json::to_string(&stats).unwrap();
        assert_eq!(serde_json::from_str::<EngineStats>(&json).unwrap(), stats);
        assert_eq!(serde_json::from_str::<EngineStats>("{}").unwrap(), EngineStats::default());
    }
}

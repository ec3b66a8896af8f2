//! The numbers of an engine for monitoring, in the text format of Prometheus, version 0.0.4
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>).
//!
//! What `llama-server` counts as well is there under its names too, so that boards made for it go on to work; those names
//! are from its README.

use super::EngineStats;
use crate::spec::{Histogram, Method};
use std::fmt::{self, Write as _};
use std::time::Duration;

impl EngineStats {
    /// The numbers as text that Prometheus reads; the content type is `text/plain; version=0.0.4`.
    ///
    /// Names begin with `llama_spec_`, and with `llamacpp:` where `llama-server` has the same. Times are in seconds. What is not
    /// known yet is left out.
    pub fn prometheus(&self) -> String {
        let mut page = Page::default();
        self.requests(&mut page);
        self.slots(&mut page);
        self.tokens(&mut page);
        self.speculation(&mut page);
        self.store(&mut page);
        self.times(&mut page);
        self.as_llama_server(&mut page);
        page.0
    }

    fn requests(&self, page: &mut Page) {
        page.one("llama_spec_requests_running", Gauge, "Requests that run now.", self.running);
        page.one("llama_spec_requests_queued", Gauge, "Requests that wait now.", self.queued);
        let outcomes = [
            ("finished", self.finished),
            ("cancelled", self.cancelled),
            ("expired", self.expired),
            ("failed", self.failed),
            ("refused", self.refused),
        ];
        page.family("llama_spec_requests_total", Counter, "Requests that ended, by how.");
        for (outcome, count) in outcomes {
            page.sample("llama_spec_requests_total", &[("outcome", &outcome)], count);
        }
        let help = "Times a running request lost its slot and was queued again.";
        page.one("llama_spec_preemptions_total", Counter, help, self.preempted);
    }

    fn slots(&self, page: &mut Page) {
        let busy = self.slots.iter().filter(|slot| slot.busy).count();
        page.one("llama_spec_slots", Gauge, "Slots there are.", self.slots.len());
        page.one("llama_spec_slots_busy", Gauge, "Slots in which a request runs now.", busy);
        page.family("llama_spec_slot_tokens", Gauge, "Tokens a slot holds in memory now.");
        for (index, slot) in self.slots.iter().enumerate() {
            page.sample("llama_spec_slot_tokens", &[("slot", &index)], slot.tokens);
        }
        page.one("llama_spec_decodes_total", Counter, "Batches that the target decoded.", self.decodes);
        let help = "Slots in the batches that the target decoded, added up.";
        page.one("llama_spec_decoded_slots_total", Counter, help, self.decoded_slots);
    }

    fn tokens(&self, page: &mut Page) {
        let total = &self.total;
        for (name, help, count) in [
            ("llama_spec_prompt_tokens_total", "Tokens of prompts.", total.prompt_tokens),
            (
                "llama_spec_cached_tokens_total",
                "Tokens of prompts that were in memory and not computed again.",
                total.cached_tokens,
            ),
            ("llama_spec_generated_tokens_total", "Tokens generated.", total.generated_tokens),
            ("llama_spec_rounds_total", "Times a slot had tokens checked by the target.", total.rounds),
            ("llama_spec_drafts_total", "Rounds in which there was a draft to check.", total.drafts),
            ("llama_spec_draft_failures_total", "Drafts lost because a drafter failed.", total.failures),
        ] {
            page.one(name, Counter, help, count);
        }
        let (drafted_total, accepted_total) = ("llama_spec_drafted_tokens_total", "llama_spec_accepted_tokens_total");
        page.family(drafted_total, Counter, "Tokens drafted, by who drafted them.");
        for (source, drafted, _) in total.per_source() {
            page.sample(drafted_total, &[("source", &source)], drafted);
        }
        page.family(accepted_total, Counter, "Drafted tokens that the target accepted, by who drafted them.");
        for (source, _, accepted) in total.per_source() {
            page.sample(accepted_total, &[("source", &source)], accepted);
        }
        let names = ("llama_spec_drafted_position_tokens_total", "llama_spec_accepted_position_tokens_total");
        for (name, help, accepted) in [
            (names.0, "Tokens drafted, by who drafted them and their position in the draft from 0.", false),
            (names.1, "Drafted tokens accepted, by who drafted them and their position in the draft from 0.", true),
        ] {
            page.family(name, Counter, help);
            for (source, positions) in &total.per_source_and_position {
                for (position, counts) in positions.iter().enumerate() {
                    let count = if accepted { counts.1 } else { counts.0 };
                    page.sample(name, &[("source", source), ("position", &position)], count);
                }
            }
        }
    }

    fn speculation(&self, page: &mut Page) {
        let speculation = &self.speculation;
        let active = u8::from(speculation.is_active());
        page.one("llama_spec_speculation_active", Gauge, "1 if drafts are made, else 0.", active);
        let info = "llama_spec_speculation_info";
        page.family(info, Gauge, "Always 1; the labels say what was asked for, what is in force and why.");
        let (requested, effective) = (names(&speculation.requested), speculation.drafters());
        let reason = speculation.reason.as_deref().unwrap_or_default();
        page.sample(info, &[("requested", &requested), ("effective", &effective), ("reason", &reason)], 1);
        if let Some(plain_token) = self.plain_token {
            let help = "Time the target alone takes for a token of one slot, as measured.";
            page.one("llama_spec_plain_token_seconds", Gauge, help, Seconds(plain_token));
        }
        if let Some(speedup) = self.speedup() {
            let help = "How many times as fast as without speculation all requests were.";
            page.one("llama_spec_speedup_ratio", Gauge, help, speedup);
        }
        if self.account.tokens > 0 {
            let help = "Time of the rounds that the controller decided about.";
            page.one("llama_spec_controlled_seconds_total", Counter, help, Seconds(self.account.time));
            let help = "Time that plain decoding would have taken for the tokens of these rounds.";
            page.one("llama_spec_plain_seconds_total", Counter, help, Seconds(self.account.plain));
            let help = "1 while nothing is drafted because too much was lost of late, else 0.";
            page.one("llama_spec_drafting_closed", Gauge, help, u8::from(self.account.closed));
        }
    }

    fn store(&self, page: &mut Page) {
        let Some(store) = &self.store else { return };
        page.one("llama_spec_store_bytes", Gauge, "Bytes of the texts that are kept for lookup.", store.bytes);
        page.one("llama_spec_store_tokens", Gauge, "Tokens of these texts.", store.tokens);
        page.one("llama_spec_store_tenants", Gauge, "Tenants that have such texts.", store.tenants);
        let help = "Tokens guessed right because of these texts; old ones count less and less.";
        page.one("llama_spec_store_saved_tokens", Gauge, help, store.saved);
    }

    fn times(&self, page: &mut Page) {
        let (total, phases) = (&self.total, "llama_spec_phase_seconds_total");
        page.family(phases, Counter, "Time spent, by what for.");
        for (phase, time) in [
            ("prefill", total.prefill),
            ("draft", total.draft),
            ("verify", total.verify),
            ("sample", total.sample),
            ("rollback", total.rollback),
        ] {
            page.sample(phases, &[("phase", &phase)], Seconds(time));
        }
        let help = "Time requests took from the end of their prompt to their last token, added up.";
        page.one("llama_spec_generation_seconds_total", Counter, help, Seconds(total.generation));
        for (name, help, times) in [
            ("llama_spec_inter_token_seconds", "Times between a token and the next.", &total.inter_token),
            (
                "llama_spec_time_to_first_token_seconds",
                "Times from a request to its first token.",
                &self.times_to_first_token,
            ),
            ("llama_spec_queue_seconds", "Times requests waited to be started.", &self.queue_times),
        ] {
            page.histogram(name, help, times);
        }
    }

    /// What `llama-server` counts, under its names.
    fn as_llama_server(&self, page: &mut Page) {
        let total = &self.total;
        let computed = total.prompt_tokens.saturating_sub(total.cached_tokens);
        for (name, help, count) in [
            ("llamacpp:prompt_tokens_total", "Tokens of prompts that were computed.", computed),
            ("llamacpp:tokens_predicted_total", "Tokens generated.", total.generated_tokens),
            ("llamacpp:n_decode_total", "Batches that the target decoded.", self.decodes),
            ("llamacpp:spec_decode_num_drafts_total", "Drafts that were checked.", total.drafts),
            ("llamacpp:spec_decode_num_draft_tokens_total", "Tokens drafted.", total.drafted),
            (
                "llamacpp:spec_decode_num_accepted_tokens_total",
                "Drafted tokens that the target accepted.",
                total.accepted,
            ),
        ] {
            page.one(name, Counter, help, count);
        }
        let name = "llamacpp:spec_decode_num_accepted_tokens_per_pos_total";
        page.family(name, Counter, "Drafted tokens that the target accepted, by their position in the draft from 0.");
        for (position, accepted) in total.accepted_per_position.iter().enumerate() {
            page.sample(name, &[("position", &position)], accepted);
        }
        let (prompts, predictions) = ("llamacpp:prompt_seconds_total", "llamacpp:tokens_predicted_seconds_total");
        page.one(prompts, Counter, "Time to compute prompts.", Seconds(total.prefill));
        page.one(predictions, Counter, "Time to generate.", Seconds(total.generation));
        let (prompt_rate, rate) = (total.prompt_tokens_per_second(), total.tokens_per_second());
        for (name, help, value) in [
            ("llamacpp:prompt_tokens_seconds", "Tokens of prompts computed in a second.", prompt_rate),
            ("llamacpp:predicted_tokens_seconds", "Tokens generated in a second, of one request.", rate),
            ("llamacpp:n_busy_slots_per_decode", "Slots that share a batch on average.", self.slots_per_decode()),
        ] {
            page.one(name, Gauge, help, value.unwrap_or(0.0));
        }
        page.one("llamacpp:requests_processing", Gauge, "Requests that run now.", self.running);
        page.one("llamacpp:requests_deferred", Gauge, "Requests that wait now.", self.queued);
    }
}

/// The methods as a list.
fn names(methods: &[Method]) -> String {
    methods.iter().map(|method| method.name()).collect::<Vec<_>>().join(",")
}

use Kind::{Counter, Gauge};

#[derive(Clone, Copy)]
enum Kind {
    Counter,
    Gauge,
}

/// Seconds, written exactly.
#[derive(Clone, Copy)]
struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_secs_f64().fmt(f)
    }
}

/// The text so far. Writing to a string does not fail.
#[derive(Default)]
struct Page(String);

impl Page {
    /// Begins a metric; its samples must follow.
    fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Counter => "counter",
            Gauge => "gauge",
        };
        self.begin(name, kind, help);
    }

    fn begin(&mut self, name: &str, kind: &str, help: &str) {
        _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &dyn fmt::Display)], value: impl fmt::Display) {
        self.0.push_str(name);
        for (index, (label, text)) in labels.iter().enumerate() {
            self.0.push(if index == 0 { '{' } else { ',' });
            _ = write!(self.0, "{label}=\"{}\"", escaped(&text.to_string()));
        }
        let end = if labels.is_empty() { "" } else { "}" };
        _ = writeln!(self.0, "{end} {value}");
    }

    /// A metric of one sample.
    fn one(&mut self, name: &str, kind: Kind, help: &str, value: impl fmt::Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.begin(name, "histogram", help);
        let bucket = format!("{name}_bucket");
        for (bound, count) in histogram.cumulative() {
            let bound = bound.map_or("+Inf".to_owned(), |bound| Seconds(bound).to_string());
            self.sample(&bucket, &[("le", &bound)], count);
        }
        self.sample(&format!("{name}_sum"), &[], Seconds(histogram.sum()));
        self.sample(&format!("{name}_count"), &[], histogram.count());
    }
}

/// The value of a label as it is written between quotes.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::super::stats::example;
    use super::*;
    use std::collections::{HashMap, HashSet};

    type Labels = Vec<(String, String)>;

    /// Reads a page strictly: what is not as the format says is an error.
    fn read(page: &str) -> Result<Vec<(String, Labels, f64)>, String> {
        let mut types: HashMap<&str, &str> = HashMap::new();
        let mut helped = HashSet::new();
        let mut open = "";
        let mut samples: Vec<(String, Labels, f64)> = Vec::new();
        if !page.ends_with('\n') {
            return Err("the last line has no end".into());
        }
        for line in page.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, text) = help.split_once(' ').ok_or("help without a text")?;
                if text.is_empty() || !helped.insert(name) {
                    return Err(format!("a second help for {name}, or an empty one"));
                }
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').ok_or("a type without a kind")?;
                if !helped.contains(name) || types.insert(name, kind).is_some() {
                    return Err(format!("{name} is begun twice, or without help"));
                }
                open = name;
            } else {
                let (name, labels, value) = sample(line).ok_or_else(|| format!("no sample: {line}"))?;
                let histogram = types.get(open) == Some(&"histogram");
                let known = match name.strip_prefix(open) {
                    Some("") => !histogram,
                    Some("_bucket" | "_sum" | "_count") => histogram,
                    _ => false,
                };
                if !known || !value.is_finite() {
                    return Err(format!("not a sample of {open}, or no number: {line}"));
                }
                if samples.iter().any(|(old, with, _)| (old, with) == (&name, &labels)) {
                    return Err(format!("twice: {line}"));
                }
                if types.get(open) == Some(&"counter") && !name.ends_with("_total") {
                    return Err(format!("a counter whose name does not say so: {name}"));
                }
                samples.push((name, labels, value));
            }
        }
        Ok(samples)
    }

    fn sample(line: &str) -> Option<(String, Labels, f64)> {
        let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'))?;
        let (name, mut rest) = line.split_at(end);
        let mut labels = Labels::new();
        if let Some(inside) = rest.strip_prefix('{') {
            rest = inside;
            loop {
                let (label, after) = rest.split_once("=\"")?;
                let (text, after) = unescaped(after)?;
                labels.push((label.to_owned(), text));
                match after.strip_prefix(',') {
                    Some(next) => rest = next,
                    None => {
                        rest = after.strip_prefix('}')?;
                        break;
                    }
                }
            }
        }
        Some((name.to_owned(), labels, rest.strip_prefix(' ')?.parse().ok()?))
    }

    /// The text up to the closing quote, and what is behind it.
    fn unescaped(text: &str) -> Option<(String, &str)> {
        let mut chars = text.char_indices();
        let mut plain = String::new();
        loop {
            match chars.next()? {
                (index, '"') => return Some((plain, &text[index + 1..])),
                (_, '\\') => plain.push(match chars.next()?.1 {
                    'n' => '\n',
                    c @ ('\\' | '"') => c,
                    _ => return None,
                }),
                (_, c) => plain.push(c),
            }
        }
    }

    fn value(samples: &[(String, Labels, f64)], name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let wanted: Labels = labels.iter().map(|(label, text)| ((*label).into(), (*text).into())).collect();
        samples.iter().find(|(known, with, _)| known == name && *with == wanted).map(|(_, _, value)| *value)
    }

    #[test]
    fn the_page_is_read_back() {
        let samples = read(&example().prometheus()).unwrap();
        for (name, labels, expected) in [
            ("llama_spec_requests_running", vec![], 1.0),
            ("llama_spec_requests_total", vec![("outcome", "refused")], 4.0),
            ("llama_spec_slots_busy", vec![], 1.0),
            ("llama_spec_slot_tokens", vec![("slot", "0")], 512.0),
            ("llama_spec_drafted_tokens_total", vec![("source", "draft-simple")], 8.0),
            ("llama_spec_accepted_tokens_total", vec![("source", "own-0")], 0.0),
            ("llama_spec_accepted_position_tokens_total", vec![("source", "draft-simple"), ("position", "2")], 2.0),
            ("llama_spec_draft_failures_total", vec![], 4.0),
            ("llama_spec_phase_seconds_total", vec![("phase", "prefill")], 3.0),
            ("llama_spec_plain_token_seconds", vec![], 0.1),
            ("llamacpp:prompt_tokens_total", vec![], 120.0),
            ("llamacpp:prompt_tokens_seconds", vec![], 40.0),
            ("llamacpp:tokens_predicted_seconds_total", vec![], 8.0),
            ("llamacpp:n_busy_slots_per_decode", vec![], 1.5),
            ("llamacpp:spec_decode_num_accepted_tokens_per_pos_total", vec![("position", "1")], 2.0),
            ("llamacpp:requests_deferred", vec![], 3.0),
        ] {
            assert_eq!(value(&samples, name, &labels), Some(expected), "{name}");
        }
    }

    #[test]
    fn a_speed_up_is_told_where_there_is_one() {
        let mut stats = example();
        let told = |stats: &EngineStats| value(&read(&stats.prometheus()).unwrap(), "llama_spec_speedup_ratio", &[]);
        assert_eq!(told(&stats), None, "slots shared batches");
        stats.decoded_slots = stats.decodes;
        assert_eq!(told(&stats), Some(2.0));
    }

    #[test]
    fn labels_are_escaped() {
        let samples = read(&example().prometheus()).unwrap();
        let (_, labels, _) = samples.iter().find(|(name, _, _)| name == "llama_spec_speculation_info").unwrap();
        assert_eq!(labels[0], ("requested".into(), "draft-simple,ngram-mod".into()));
        assert_eq!(labels[2], ("reason".into(), "\"ngram-mod\" is off:\na \\ in the text".into()));
    }

    #[test]
    fn buckets_are_cumulative() {
        let samples = read(&example().prometheus()).unwrap();
        for name in ["inter_token", "time_to_first_token", "queue"].map(|name| format!("llama_spec_{name}_seconds")) {
            let bucket = format!("{name}_bucket");
            let buckets: Vec<(&str, f64)> = samples
                .iter()
                .filter(|(known, _, _)| *known == bucket)
                .map(|(_, labels, count)| (labels[0].1.as_str(), *count))
                .collect();
            assert_eq!(buckets.len(), Histogram::BOUNDS.len() + 1);
            assert!(buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{buckets:?}");
            let bounds: Vec<f64> = buckets.iter().map(|(bound, _)| bound.parse().unwrap()).collect();
            assert!(bounds.windows(2).all(|pair| pair[0] < pair[1]), "{bounds:?}");
            assert_eq!(buckets.last().map(|(bound, _)| *bound), Some("+Inf"));
            assert_eq!(value(&samples, &format!("{name}_count"), &[]), buckets.last().map(|(_, count)| *count));
        }
        assert_eq!(value(&samples, "llama_spec_inter_token_seconds_count", &[]), Some(10.0));
        assert_eq!(value(&samples, "llama_spec_inter_token_seconds_bucket", &[("le", "0.005")]), Some(6.0));
        let sum = value(&samples, "llama_spec_inter_token_seconds_sum", &[]).unwrap();
        assert!((sum - 400.102).abs() < 1e-9, "{sum}");
    }

    #[test]
    fn an_engine_that_did_nothing_has_a_page() {
        let samples = read(&EngineStats::default().prometheus()).unwrap();
        assert_eq!(value(&samples, "llamacpp:predicted_tokens_seconds", &[]), Some(0.0));
        assert_eq!(value(&samples, "llama_spec_speedup_ratio", &[]), None);
    }

    #[test]
    fn the_checker_refuses_what_is_wrong() {
        let begin = "# HELP a_total x\n# TYPE a_total counter\n";
        assert!(read(&format!("{begin}a_total 1\n")).is_ok());
        for wrong in [
            "a_total NaN\n",
            "b_total 1\n",
            "a_total{x=\"\\t\"} 1\n",
            "a_total 1\na_total 2\n",
            "a_total_sum 1\n",
            "a_total 1",
        ] {
            assert!(read(&format!("{begin}{wrong}")).is_err(), "{wrong}");
        }
    }
}

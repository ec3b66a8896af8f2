//! The ranges of the options, checked before llama.cpp sees them: it clamps, ignores or aborts instead of explaining.

use super::grammar::{Grammar, TemplateGrammar, Trigger};
use super::options::SamplerOptions;
use super::parts::{Dry, DynamicTemperature, Mirostat, Stage};
use super::pattern;
use crate::error::{Error, Result};
use std::collections::HashSet;
use std::fmt::Debug;
use std::ops::RangeInclusive;

/// llama.cpp allocates memory for each token it looks back at.
const MAX_LAST_N: u32 = 1 << 24;
/// Limits of llama.cpp's DRY, which cuts what is beyond them.
const MAX_BREAKERS: usize = 64;
const MAX_BREAKER_BYTES: usize = 40;
/// Below this, logits divided by the temperature may overflow.
const MIN_TEMPERATURE: f32 = 0.0001;
const MAX_TEMPERATURE: f32 = 1000.0;

impl SamplerOptions {
    /// Checks every value against its range, and that no setting is ignored because of another.
    ///
    /// # Errors
    /// [`Error::Setting`] with the name, the value and the range of the first that does not fit.
    pub fn validate(&self) -> Result<()> {
        self.check_numbers()?;
        self.check_groups()?;
        self.check_bias()?;
        self.check_stages()?;
        self.check_texts()
    }

    fn check_numbers(&self) -> Result<()> {
        let zero_to_max = "from 0 to 2147483647";
        if self.seed == Some(u32::MAX) {
            return refuse("seed", u32::MAX, "from 0 to 4294967294; leave it out for a new one each time");
        }
        if self.temperature != 0.0 {
            let expected = format!("0, or a number from {MIN_TEMPERATURE} to {MAX_TEMPERATURE}");
            require(
                (MIN_TEMPERATURE..=MAX_TEMPERATURE).contains(&self.temperature),
                "temperature",
                self.temperature,
                &expected,
            )?;
        }
        require(self.top_k <= i32::MAX as u32, "top_k", self.top_k, zero_to_max)?;
        require(self.min_keep <= MAX_LAST_N, "min_keep", self.min_keep, &format!("from 0 to {MAX_LAST_N} tokens"))?;
        number("top_p", self.top_p, 0.0..=1.0, "; 1 switches it off")?;
        number("min_p", self.min_p, 0.0..=1.0, "; 0 switches it off")?;
        number("typical_p", self.typical_p, 0.0..=1.0, "; 1 switches it off")?;
        if let Some(n) = self.top_n_sigma {
            number("top_n_sigma", n, 0.01..=100.0, "; leave it out to switch it off")?;
        }
        if let Some(budget) = self.reasoning_budget {
            require(budget <= i32::MAX as u32, "reasoning_budget", budget, zero_to_max)?;
        }
        Ok(())
    }

    fn check_groups(&self) -> Result<()> {
        if let Some(DynamicTemperature { range, exponent }) = self.dynamic_temperature {
            let most = (self.temperature - MIN_TEMPERATURE).min(MAX_TEMPERATURE - self.temperature);
            let expected = format!(
                "from 0.001 to {most} at this temperature, so that it stays between {MIN_TEMPERATURE} and {MAX_TEMPERATURE}"
            );
            require((0.001..=most).contains(&range), "dynamic_temperature.range", range, &expected)?;
            number("dynamic_temperature.exponent", exponent, 0.0..=100.0, "")?;
        }
        if let Some(xtc) = self.xtc {
            number("xtc.probability", xtc.probability, 0.0..=1.0, "")?;
            number("xtc.threshold", xtc.threshold, 0.0..=0.5, "")?;
        }
        if let Some(adaptive) = self.adaptive_p {
            number("adaptive_p.target", adaptive.target, 0.0..=1.0, "")?;
            number("adaptive_p.decay", adaptive.decay, 0.0..=0.99, "")?;
        }
        if let Mirostat::V1 { tau, eta } | Mirostat::V2 { tau, eta } = self.mirostat {
            number("mirostat.tau", tau, 0.01..=100.0, "")?;
            number("mirostat.eta", eta, 0.0..=10.0, "")?;
        }
        let penalties = &self.penalties;
        require(
            penalties.last_n <= MAX_LAST_N,
            "penalties.last_n",
            penalties.last_n,
            &format!("from 0 to {MAX_LAST_N} tokens"),
        )?;
        number("penalties.repeat", penalties.repeat, 0.01..=100.0, "; 1 switches it off")?;
        number("penalties.frequency", penalties.frequency, -1000.0..=1000.0, "; 0 switches it off")?;
        number("penalties.presence", penalties.presence, -1000.0..=1000.0, "; 0 switches it off")?;
        self.dry.as_ref().map_or(Ok(()), check_dry)
    }

    fn check_bias(&self) -> Result<()> {
        let mut seen = HashSet::new();
        for entry in &self.logit_bias {
            number("logit_bias", entry.bias, -1e6..=1e6, "; ban a token to rule it out")?;
            require(seen.insert(entry.token), "logit_bias", entry.token, "each token once")?;
        }
        Ok(())
    }

    /// A setting whose stage does not run would be ignored without a word.
    fn check_stages(&self) -> Result<()> {
        let mut seen = HashSet::new();
        for stage in &self.stages {
            require(seen.insert(*stage), "stages", &self.stages, &format!("{stage:?} only once"))?;
        }
        let optional = [
            ("penalties", self.penalties.act(), Some(Stage::Penalties)),
            ("dry", self.dry.as_ref().is_some_and(|dry| dry.multiplier > 0.0), Some(Stage::Dry)),
            ("top_n_sigma", self.top_n_sigma.is_some(), Some(Stage::TopNSigma)),
            ("typical_p", self.typical_p < 1.0, Some(Stage::TypicalP)),
            ("xtc", self.xtc.is_some_and(|xtc| xtc.probability > 0.0), Some(Stage::Xtc)),
            ("dynamic_temperature", self.dynamic_temperature.is_some(), Some(Stage::Temperature)),
            ("adaptive_p", self.adaptive_p.is_some(), None),
        ];
        if self.min_tokens > 0 {
            let infills = self.mirostat == Mirostat::Off && self.stages.contains(&Stage::Infill);
            require(!infills, "min_tokens", self.min_tokens, "0 with the stage Infill, which ends the text by itself")?;
        }
        for (name, _, stage) in optional.into_iter().filter(|(_, set, _)| *set) {
            if self.mirostat != Mirostat::Off {
                return refuse(
                    "mirostat",
                    self.mirostat,
                    &format!("no {name} beside it, since it takes the place of the stages"),
                );
            }
            let runs = stage.is_none_or(|stage| self.stages.contains(&stage));
            require(runs, "stages", &self.stages, &format!("{name} among them, since it is set"))?;
        }
        Ok(())
    }

    fn check_texts(&self) -> Result<()> {
        self.grammar.as_ref().map_or(Ok(()), check_grammar)?;
        let Some(tags) = &self.reasoning_tags else {
            let needs = "reasoning_tags, which `Rendered::apply` sets if the model's template knows reasoning";
            require(self.reasoning_budget.is_none(), "reasoning_budget", self.reasoning_budget, needs)?;
            return require(self.reasoning_message.is_empty(), "reasoning_message", &self.reasoning_message, needs);
        };
        let marked = !tags.start.is_empty() && !tags.ends.is_empty() && tags.ends.iter().all(|end| !end.is_empty());
        require(marked, "reasoning_tags", tags, "a start and at least one end, none of them empty")
    }
}

fn check_grammar(grammar: &Grammar) -> Result<()> {
    let (gbnf, triggers) = match grammar {
        Grammar::JsonSchema(_) => return Ok(()),
        Grammar::Gbnf(gbnf) => (gbnf, None),
        Grammar::Lazy { gbnf, triggers } => (gbnf, Some(triggers)),
        Grammar::Template(TemplateGrammar { gbnf, lazy, triggers }) => (gbnf, lazy.then_some(triggers)),
    };
    require(!gbnf.trim().is_empty(), "grammar", gbnf, "a rule `root`")?;
    let Some(triggers) = triggers else { return Ok(()) };
    require(!triggers.is_empty(), "grammar.triggers", triggers, "at least one trigger")?;
    triggers.iter().try_for_each(|trigger| match trigger {
        Trigger::Token(_) => Ok(()),
        Trigger::Word(word) => {
            require(!word.is_empty() && !word.contains('\0'), "grammar.triggers", word, "a text without NUL")
        }
        Trigger::Pattern(pattern) | Trigger::FullPattern(pattern) => {
            require(pattern::bounded(pattern).is_some(), "grammar.triggers", pattern, &pattern::rule())
        }
    })
}

fn check_dry(dry: &Dry) -> Result<()> {
    number("dry.multiplier", dry.multiplier, 0.0..=1000.0, "; 0 switches it off")?;
    number("dry.base", dry.base, 1.0..=100.0, "")?;
    require(
        dry.allowed_length <= MAX_LAST_N,
        "dry.allowed_length",
        dry.allowed_length,
        &format!("from 0 to {MAX_LAST_N} tokens"),
    )?;
    require(
        (1..=MAX_LAST_N).contains(&dry.last_n),
        "dry.last_n",
        dry.last_n,
        &format!("from 1 to {MAX_LAST_N} tokens"),
    )?;
    require(
        dry.breakers.len() <= MAX_BREAKERS,
        "dry.breakers",
        dry.breakers.len(),
        &format!("at most {MAX_BREAKERS} texts"),
    )?;
    for breaker in &dry.breakers {
        let fits = (1..=MAX_BREAKER_BYTES).contains(&breaker.len()) && !breaker.contains('\0');
        require(fits, "dry.breakers", breaker, &format!("texts of 1 to {MAX_BREAKER_BYTES} bytes without NUL"))?;
    }
    Ok(())
}

/// NaN is in no range.
fn number(setting: &'static str, value: f32, range: RangeInclusive<f32>, note: &str) -> Result<()> {
    let expected = || format!("a number from {} to {}{note}", range.start(), range.end());
    if range.contains(&value) { Ok(()) } else { refuse(setting, value, &expected()) }
}

fn require(holds: bool, setting: &'static str, value: impl Debug, expected: &str) -> Result<()> {
    if holds { Ok(()) } else { refuse(setting, value, expected) }
}

fn refuse(setting: &'static str, value: impl Debug, expected: &str) -> Result<()> {
    Err(Error::Setting { setting, value: format!("{value:?}"), expected: expected.to_owned() })
}

#[cfg(test)]
mod tests;

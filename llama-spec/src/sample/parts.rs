//! The settings that come in groups, and the stages of the chain.

use crate::token::Token;
use serde::{Deserialize, Serialize};

/// A step that filters or reshapes the candidates. Each has a setting of the same name in [`SamplerOptions`](super::SamplerOptions),
/// where it is explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stage {
    /// Penalties for tokens that occurred.
    Penalties,
    /// The penalty for continuing a repetition.
    Dry,
    /// Within some standard deviations of the highest logit.
    TopNSigma,
    /// The most probable `k`.
    TopK,
    /// Close to the expected information content.
    TypicalP,
    /// The nucleus.
    TopP,
    /// Not far below the most probable one.
    MinP,
    /// Without the top choices.
    Xtc,
    /// Division of the logits.
    Temperature,
    /// For filling in the middle: ends the text when its end is likely enough, and merges tokens that begin alike. It
    /// compares every pair of candidates, so it belongs behind [`Stage::TopK`], and the vocabulary must have an
    /// end-of-sequence token.
    Infill,
}

impl Stage {
    /// llama.cpp's order.
    pub const DEFAULT_ORDER: [Self; 9] = [
        Self::Penalties,
        Self::Dry,
        Self::TopNSigma,
        Self::TopK,
        Self::TypicalP,
        Self::TopP,
        Self::MinP,
        Self::Xtc,
        Self::Temperature,
    ];
}

/// A temperature that follows the entropy of the distribution, from `temperature - range` when one token is certain to
/// `temperature + range` when all are alike (of the kind studied by Zhang et al. 2024, arXiv 2403.14541).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DynamicTemperature {
    /// How far the temperature may move: from 0.001 to so much that the lower end stays at 0.0001 or above. Default 0.5.
    pub range: f32,
    /// How the entropy maps to the range: its share of the highest possible entropy to this power. 0 to 100, default 1.
    pub exponent: f32,
}

impl Default for DynamicTemperature {
    fn default() -> Self {
        Self { range: 0.5, exponent: 1.0 }
    }
}

/// Exclude Top Choices (P. E. Weidmann, 2024): now and then, remove all tokens above a threshold but the least probable of
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Xtc {
    /// How often, 0 to 1. Default 0.5.
    pub probability: f32,
    /// The probability from which a token is a top choice, 0 to 0.5 (above one half there is never a second one).
    /// Default 0.1.
    pub threshold: f32,
}

impl Default for Xtc {
    fn default() -> Self {
        Self { probability: 0.5, threshold: 0.1 }
    }
}

/// Mirostat (Basu et al. 2020, arXiv 2007.14966) holds the surprise of the text at a target. It takes the place of all
/// stages but the temperature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "version", rename_all = "snake_case", deny_unknown_fields)]
pub enum Mirostat {
    /// Not used.
    #[default]
    Off,
    /// The version with an estimate of the distribution's exponent.
    V1 {
        /// Target surprise in bits, 0.01 to 100. llama.cpp's default is 5.
        tau: f32,
        /// Learning rate, 0 to 10. llama.cpp's default is 0.1.
        eta: f32,
    },
    /// The simpler version without the estimate.
    V2 {
        /// Target surprise in bits, 0.01 to 100. llama.cpp's default is 5.
        tau: f32,
        /// Learning rate, 0 to 10. llama.cpp's default is 0.1.
        eta: f32,
    },
}

/// Adaptive-p (llama.cpp): draws tokens whose probability is near a target, and moves the target so that the average over the
/// last tokens stays there. It does the drawing, after all stages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdaptiveP {
    /// The target probability, 0 to 1. Default 0.5.
    pub target: f32,
    /// How slowly the average forgets, 0 to 0.99: it reaches back about `1 / (1 - decay)` tokens. Default 0.9.
    pub decay: f32,
}

impl Default for AdaptiveP {
    fn default() -> Self {
        Self { target: 0.5, decay: 0.9 }
    }
}

/// Penalties for tokens among the last ones, prompt included: the repetition penalty of CTRL (Keskar et al. 2019,
/// arXiv 1909.05858), and the frequency and presence penalties of OpenAI's interface.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Penalties {
    /// How many tokens back they look, 0 to 16 777 216; 0 switches them off. Default 64.
    pub last_n: u32,
    /// Divides positive logits and multiplies negative ones, 0.01 to 100; 1 switches it off, which is the default.
    pub repeat: f32,
    /// Subtracted once for each occurrence, -1000 to 1000; 0 switches it off, which is the default.
    pub frequency: f32,
    /// Subtracted once if the token occurs at all, -1000 to 1000; 0 switches it off, which is the default.
    pub presence: f32,
}

impl Penalties {
    /// Whether they change anything.
    pub(crate) fn act(&self) -> bool {
        self.last_n > 0 && (self.repeat != 1.0 || self.frequency != 0.0 || self.presence != 0.0)
    }
}

impl Default for Penalties {
    fn default() -> Self {
        Self { last_n: 64, repeat: 1.0, frequency: 0.0, presence: 0.0 }
    }
}

/// Don't Repeat Yourself (P. E. Weidmann, 2024): a token that would continue a repetition loses
/// `multiplier * base ^ (length of the repetition - allowed_length)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dry {
    /// The strength, 0 to 1000; 0 switches it off. Default 0.8.
    pub multiplier: f32,
    /// How fast it grows with the length, 1 to 100. Default 1.75.
    pub base: f32,
    /// Repetitions up to this many tokens are free, 0 to 16 777 216. Default 2.
    pub allowed_length: u32,
    /// How many tokens back it looks, 1 to 16 777 216. Default 64.
    pub last_n: u32,
    /// Texts across which nothing counts as a repetition, at most 64 of 1 to 40 bytes. Default: line feed, `:`, `"`, `*`.
    pub breakers: Vec<String>,
}

impl Default for Dry {
    fn default() -> Self {
        let breakers = ["\n", ":", "\"", "*"].map(str::to_owned).to_vec();
        Self { multiplier: 0.8, base: 1.75, allowed_length: 2, last_n: 64, breakers }
    }
}

/// A number added to the logit of a token.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogitBias {
    /// The token.
    pub token: Token,
    /// The number, -1 000 000 to 1 000 000.
    pub bias: f32,
}

/// How a model marks its reasoning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReasoningTags {
    /// What begins it, such as `<think>`.
    pub start: String,
    /// What ends it; the first one is written when the budget is spent.
    pub ends: Vec<String>,
}

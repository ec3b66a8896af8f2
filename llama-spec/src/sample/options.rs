//! The choices for sampling: plain values, checked before llama.cpp sees them.

use super::grammar::Grammar;
use super::parts::{AdaptiveP, Dry, DynamicTemperature, LogitBias, Mirostat, Penalties, ReasoningTags, Stage, Xtc};
use crate::token::Token;
use serde::{Deserialize, Serialize};

/// How the next token is chosen. The defaults are those of llama.cpp; setters take and return the options.
///
/// Values out of range are kept, and refused by [`validate`](Self::validate), which [`Sampler::new`](super::Sampler::new)
/// calls.
///
/// ```
/// use llama_spec::sample::{Dry, SamplerOptions};
/// let options = SamplerOptions::default().temperature(0.6).min_p(0.1).dry(Dry::default());
/// let json = serde_json::to_string(&options)?;
/// assert_eq!(serde_json::from_str::<SamplerOptions>(&json)?, options);
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct SamplerOptions {
    /// Where the random numbers start; the same seed and the same rows give the same tokens. 0 to 4 294 967 294; `None`, the
    /// default, takes a new one each time.
    pub seed: Option<u32>,
    /// Divides the logits, 0.0001 to 1000: below 1 the probable tokens gain, above 1 they lose. 0 leaves only the most
    /// probable token, and the filters that would keep it anyway do not run. Default 0.8.
    pub temperature: f32,
    /// A temperature that follows the entropy. Default: fixed.
    pub dynamic_temperature: Option<DynamicTemperature>,
    /// Keeps the most probable `k` tokens (Fan et al. 2018, arXiv 1805.04833). 0 switches it off. Default 40.
    pub top_k: u32,
    /// Keeps the smallest set of tokens whose probabilities add up to this (Holtzman et al. 2019, arXiv 1904.09751). 0 to 1;
    /// 1 switches it off. Default 0.95.
    pub top_p: f32,
    /// Keeps tokens that are at least this probable in relation to the most probable one (Nguyen et al. 2024,
    /// arXiv 2407.01082). 0 to 1; 0 switches it off. Default 0.05.
    pub min_p: f32,
    /// Keeps tokens whose information is closest to the entropy, up to this much probability (Meister et al. 2022,
    /// arXiv 2202.00666). 0 to 1; 1 switches it off, which is the default.
    pub typical_p: f32,
    /// Keeps tokens whose logit is at most this many standard deviations below the highest (Tang et al. 2024,
    /// arXiv 2411.07641). 0.01 to 100. Default: off.
    pub top_n_sigma: Option<f32>,
    /// Excludes top choices. Default: off.
    pub xtc: Option<Xtc>,
    /// Holds the surprise at a target, in place of the other stages. Default: off.
    pub mirostat: Mirostat,
    /// Draws tokens near a target probability. Default: off.
    pub adaptive_p: Option<AdaptiveP>,
    /// Penalties for tokens that occurred. Default: none.
    pub penalties: Penalties,
    /// The penalty for continuing a repetition. Default: off.
    pub dry: Option<Dry>,
    /// Numbers added to the logits of tokens, each token at most once.
    pub logit_bias: Vec<LogitBias>,
    /// Tokens that are never chosen.
    pub banned: Vec<Token>,
    /// Never choose a token that ends the text. Default: off.
    pub ignore_eos: bool,
    /// How many tokens are generated, at least: before that, none that ends the text is chosen. It yields where nothing else
    /// is left, so that a grammar that is at its end, or a reasoning budget that forces an end, is no error. Not together with
    /// [`Stage::Infill`]. Default 0.
    pub min_tokens: u32,
    /// How many tokens the filters leave at least, 0 to 16 777 216. Default 0: each leaves one.
    pub min_keep: u32,
    /// The stages, in this order; those that are not named do not run.
    pub stages: Vec<Stage>,
    /// What the text must look like. Default: anything.
    pub grammar: Option<Grammar>,
    /// Apply the grammar to all tokens before anything else, and not only to the one that was drawn. Slower; for those who
    /// want every candidate to fit the grammar. Default: off.
    pub grammar_first: bool,
    /// What a chat template has put at the end of the prompt that is already part of the answer;
    /// [`Rendered::apply`](crate::chat::Rendered::apply) sets it. The template's grammar begins there, and so may a passage of
    /// reasoning.
    pub generation_prompt: String,
    /// How many tokens a passage of reasoning may have before its end is forced. Needs [`reasoning_tags`](Self::reasoning_tags),
    /// which [`Rendered::apply`](crate::chat::Rendered::apply) sets. Default: no limit.
    pub reasoning_budget: Option<u32>,
    /// How the model marks its reasoning. With them, a lazy grammar leaves the reasoning alone, and
    /// [`Sampler::end_reasoning`](super::Sampler::end_reasoning) can cut it short.
    pub reasoning_tags: Option<ReasoningTags>,
    /// What is written before the end tag when the budget is spent. Default: nothing.
    pub reasoning_message: String,
}

impl Default for SamplerOptions {
    fn default() -> Self {
        Self {
            seed: None,
            temperature: 0.8,
            dynamic_temperature: None,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            typical_p: 1.0,
            top_n_sigma: None,
            xtc: None,
            mirostat: Mirostat::Off,
            adaptive_p: None,
            penalties: Penalties::default(),
            dry: None,
            logit_bias: Vec::new(),
            banned: Vec::new(),
            ignore_eos: false,
            min_tokens: 0,
            min_keep: 0,
            stages: Stage::DEFAULT_ORDER.to_vec(),
            grammar: None,
            grammar_first: false,
            generation_prompt: String::new(),
            reasoning_budget: None,
            reasoning_tags: None,
            reasoning_message: String::new(),
        }
    }
}

/// A consuming setter for each field; `some` is for those that are off by default.
macro_rules! setters {
    ($($kind:ident $name:ident: $type:ty),* $(,)?) => {$(
        #[doc = concat!("Sets [`", stringify!($name), "`](field@Self::", stringify!($name), ").")]
        pub fn $name(mut self, $name: $type) -> Self {
            self.$name = setters!(@$kind $name);
            self
        }
    )*};
    (@plain $value:ident) => { $value };
    (@some $value:ident) => { Some($value) };
}

impl SamplerOptions {
    /// Always the most probable token, the one with the smaller number when two are equally probable. The filters are left
    /// out, since they would not change that; penalties and DRY stay in the chain.
    pub fn greedy() -> Self {
        Self { temperature: 0.0, stages: vec![Stage::Penalties, Stage::Dry, Stage::Temperature], ..Self::default() }
    }

    /// Draws from the model's own distribution: temperature 1 and no filter.
    pub fn unfiltered() -> Self {
        Self { temperature: 1.0, stages: vec![Stage::Penalties, Stage::Dry, Stage::Temperature], ..Self::default() }
    }

    setters! {
        some seed: u32,
        plain temperature: f32,
        some dynamic_temperature: DynamicTemperature,
        plain top_k: u32,
        plain top_p: f32,
        plain min_p: f32,
        plain typical_p: f32,
        some top_n_sigma: f32,
        some xtc: Xtc,
        plain mirostat: Mirostat,
        some adaptive_p: AdaptiveP,
        plain penalties: Penalties,
        some dry: Dry,
        plain banned: Vec<Token>,
        plain ignore_eos: bool,
        plain min_tokens: u32,
        plain min_keep: u32,
        plain stages: Vec<Stage>,
        some grammar: Grammar,
        plain grammar_first: bool,
        plain generation_prompt: String,
        some reasoning_budget: u32,
        some reasoning_tags: ReasoningTags,
        plain reasoning_message: String,
    }

    /// Adds `bias` to the logit of `token`, in place of what was set for it before.
    pub fn logit_bias(mut self, token: Token, bias: f32) -> Self {
        self.logit_bias.retain(|entry| entry.token != token);
        self.logit_bias.push(LogitBias { token, bias });
        self
    }

    /// The options for one of several answers to a request: the same, and from the second on (`index` 1) with the seeds that
    /// follow the one that is set. Without a seed, each takes a new one anyway.
    pub(crate) fn for_answer(&self, index: u32) -> Self {
        // u32::MAX stands for no seed in llama.cpp, and is refused here.
        let following = |seed: u32| ((u64::from(seed) + u64::from(index)) % u64::from(u32::MAX)) as u32;
        let seed = self.seed.map(|seed| if seed == u32::MAX { seed } else { following(seed) });
        Self { seed, ..self.clone() }
    }

    /// The stages that can change which token is taken: with the temperature at 0, filters that never remove the most
    /// probable one are a waste of time.
    pub(crate) fn effective_stages(&self) -> impl Iterator<Item = Stage> {
        let wasted = |stage: &Stage| matches!(stage, Stage::TopNSigma | Stage::TopK | Stage::TopP | Stage::MinP);
        let certain = self.is_greedy() && self.temperature == 0.0;
        self.stages.iter().copied().filter(move |stage| !(certain && wasted(stage)))
    }

    /// Whether the most probable token is always taken, without drawing.
    pub fn is_greedy(&self) -> bool {
        let last = self.stages.last();
        let runs_last = last == Some(&Stage::Temperature) || !self.stages.contains(&Stage::Temperature);
        let one_left = (self.temperature == 0.0 && runs_last) || (self.top_k == 1 && last == Some(&Stage::TopK));
        one_left && self.mirostat == Mirostat::Off && self.adaptive_p.is_none()
    }
}

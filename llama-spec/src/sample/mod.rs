//! Choosing the next token from a row of logits.
//!
//! [`SamplerOptions`] says how, as plain values; [`Sampler`] does it, and remembers what it was told of. A row of logits
//! goes through these steps:
//!
//! 1. the reasoning budget, when it is spent, leaves only the token that ends the reasoning;
//! 2. the logit bias is added;
//! 3. tokens that end the text are left out while it has less than [`min_tokens`](field@SamplerOptions::min_tokens);
//! 4. the [stages](Stage) filter and reshape the candidates in their order;
//! 5. one candidate is drawn (or the most probable one is taken, see [`SamplerOptions::greedy`]);
//! 6. if it does not fit the [`Grammar`], the row is sampled again with the grammar applied before everything else.
//!
//! ```
//! use llama_spec::sample::{Grammar, SamplerOptions};
//!
//! let options = SamplerOptions::default().temperature(0.7).top_p(0.9).seed(42).grammar(Grammar::gbnf("root ::= [a-z]+"));
//! assert!(options.validate().is_ok());
//! assert_eq!(options.top_p(1.5).validate().unwrap_err().to_string(), "top_p = 1.5: a number from 0 to 1; 1 switches it off");
//! ```

mod candidate;
pub(crate) mod confidence;
mod grammar;
mod logprobs;
mod options;
mod parts;
mod pattern;
pub(crate) mod prepare;
mod sampler;
pub(crate) mod state;
mod validate;

pub use candidate::{Candidate, Candidates};
pub use grammar::{Grammar, TemplateGrammar, Trigger, json_schema_to_grammar};
pub use logprobs::Logprobs;
pub use options::SamplerOptions;
pub use parts::{AdaptiveP, Dry, DynamicTemperature, LogitBias, Mirostat, Penalties, ReasoningTags, Stage, Xtc};
pub use sampler::Sampler;
pub use state::SamplerState;

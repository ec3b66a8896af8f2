//! The arguments that both programs take.

pub(crate) mod parse;

pub use parse::Methods;

use crate::colour::ColourChoice;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use llama_spec::compat::Conditions;
use llama_spec::context::ContextOptions;
use llama_spec::file::ModelFile;
use llama_spec::options::GpuLayers;
use llama_spec::sample::SamplerOptions;
use llama_spec::spec::{DraftLength, SpecConfig};
use std::path::PathBuf;

/// The longest context that is taken without being asked for, in tokens: memory grows with it.
const DEFAULT_CONTEXT: u32 = 4096;

/// The models, and how they are run.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Model")]
pub struct ModelArgs {
    /// The model: a GGUF file, or the first part of a split one
    #[arg(short, long, value_name = "FILE")]
    pub model: PathBuf,

    /// A model that drafts tokens for it: a smaller one with the same vocabulary, or heads made for it
    #[arg(short, long, value_name = "FILE")]
    pub draft: Option<PathBuf>,

    /// Room for prompt and answer together, in tokens; 0 is what the model was trained for
    /// [default: what it was trained for, at most 4096]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, value_parser = parse::context)]
    pub context: Option<u32>,

    /// Threads to compute with [default: one for each processor, at most 16]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=512))]
    pub threads: Option<u32>,

    /// Layers of the model to keep on GPUs: a number, `all`, or `auto` for all of them if there is a GPU
    #[arg(long, visible_alias = "ngl", value_name = "N", default_value = "auto", allow_negative_numbers = true, value_parser = parse::gpu_layers)]
    pub gpu_layers: GpuLayers,

    /// Layers of the draft to keep on GPUs [default: as --gpu-layers]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse::gpu_layers)]
    pub draft_gpu_layers: Option<GpuLayers>,

    /// The most tokens handed to the model in one call
    #[arg(long, value_name = "N", default_value_t = 2048, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(2..=1 << 20))]
    pub batch: u32,

    /// The most tokens of a prompt computed at once: more is faster and takes more memory
    #[arg(long, value_name = "N", default_value_t = 512, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub ubatch: u32,
}

impl ModelArgs {
    /// The options of the context of a target that was trained for this many tokens.
    pub fn context_options(&self, trained: Option<u32>) -> ContextOptions {
        let usual = trained.filter(|trained| *trained > 0).unwrap_or(DEFAULT_CONTEXT).min(DEFAULT_CONTEXT);
        let options = ContextOptions::default()
            .length_per_slot(self.context.unwrap_or(usual))
            .batch(self.batch)
            .micro_batch(self.ubatch.min(self.batch));
        match self.threads {
            Some(threads) => options.threads(threads),
            None => options,
        }
    }
}

/// How to speculate.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Speculation")]
pub struct SpecArgs {
    /// How to draft: names of llama.cpp separated by commas, or `none` [default: what the files are made for]
    ///
    /// Without this option the kind of the draft decides: a small model of the same vocabulary (draft-simple), MTP heads
    /// or a Gemma 4 assistant (draft-mtp), an EAGLE-3, DFlash or DSpark draft. Without a draft, the model's own MTP heads
    /// are used if it has them, and otherwise lookup, which proposes what followed the same words earlier in the text.
    /// ngram-simple, ngram-map-k, ngram-map-k4v, ngram-mod and ngram-cache are llama.cpp's ways to do so. Of several methods the
    /// one is taken in each round that pays most. The text stays the same with any of them. What cannot work is refused before anything is loaded.
    /// [default: what the files are made for]
    #[arg(short, long, value_name = "METHODS")]
    pub spec: Option<Methods>,

    /// How long drafts are: adaptive, as many tokens as pay, or a number [default: adaptive]
    ///
    /// What a draft costs and how often it is right is measured all the time, and where none pays there is none. With a number
    /// drafts have that length whatever it costs.
    #[arg(long, value_name = "LENGTH", value_parser = parse::draft_length)]
    pub draft_length: Option<DraftLength>,

    /// The longest draft in tokens [default: 32, and 16 of a draft model]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub draft_max: Option<u32>,
}

impl SpecArgs {
    /// Whether anything was asked for.
    pub fn is_given(&self) -> bool {
        self.spec.is_some() || self.draft_length.is_some() || self.draft_max.is_some()
    }

    /// The methods asked for, or what fits the files, with the lengths asked for. Not checked yet.
    pub fn config(&self, target: &ModelFile, draft: Option<&ModelFile>, conditions: &Conditions) -> SpecConfig {
        let mut config = match &self.spec {
            Some(methods) => SpecConfig::new(methods.0.clone()),
            None => SpecConfig::choose(target, draft, conditions),
        };
        config.length = self.draft_length.unwrap_or_default();
        match self.draft_max {
            Some(longest) => with_longest(config, longest),
            None => config,
        }
    }
}

/// The configuration with no draft longer than this.
fn with_longest(mut config: SpecConfig, longest: u32) -> SpecConfig {
    config.draft_max = longest;
    config.draft_model.max = longest;
    config.lookup.max = longest as u16;
    // A lookup shorter than what it looks up would find nothing; what is too long is cut to `draft_max`.
    let long = longest as u16;
    for map in [&mut config.ngram_simple, &mut config.ngram_map_k, &mut config.ngram_map_k4v] {
        map.draft = long.max(map.lookup);
    }
    config.ngram_mod.max = long.max(config.ngram_mod.min);
    config
}

/// How tokens are chosen, apart from the temperature, whose default is not the same in both programs.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Sampling")]
pub struct SamplingArgs {
    /// The number that random choices start from; the same one gives the same text [default: a new one each time]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(..i64::from(u32::MAX)))]
    pub seed: Option<u32>,

    /// Keep the N most probable tokens; 0 switches it off
    #[arg(long, value_name = "N", default_value_t = 40, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(..=i64::from(i32::MAX)))]
    pub top_k: u32,

    /// Keep the most probable tokens that together have this probability; 1 switches it off
    #[arg(long, value_name = "P", default_value_t = 0.95, allow_negative_numbers = true, value_parser = parse::probability)]
    pub top_p: f32,

    /// Keep tokens that are at least this probable in relation to the most probable one; 0 switches it off
    #[arg(long, value_name = "P", default_value_t = 0.05, allow_negative_numbers = true, value_parser = parse::probability)]
    pub min_p: f32,

    /// End the text before this string (may be repeated)
    #[arg(long, value_name = "STRING", allow_hyphen_values = true, value_parser = NonEmptyStringValueParser::new())]
    pub stop: Vec<String>,
}

impl SamplingArgs {
    /// The options for this temperature.
    pub fn options(&self, temperature: f32) -> SamplerOptions {
        if temperature == 0.0 {
            // The filters always leave the most probable token, so they change nothing here.
            return SamplerOptions::greedy();
        }
        let mut options = SamplerOptions::default().temperature(temperature);
        (options.seed, options.top_k, options.top_p, options.min_p) = (self.seed, self.top_k, self.top_p, self.min_p);
        options
    }
}

/// What is shown.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Output")]
pub struct ShowArgs {
    /// When to use colours; drafted tokens that the model accepted are green
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub color: ColourChoice,

    /// Show llama.cpp's log on standard error; RUST_LOG chooses more exactly, such as RUST_LOG=llama.cpp=warn
    #[arg(short, long)]
    pub verbose: bool,
}

/// Reads a temperature: 0, or a number that llama.cpp can divide by.
///
/// # Errors
/// A sentence with what is allowed.
pub fn temperature(text: &str) -> Result<f32, String> {
    parse::temperature(text)
}

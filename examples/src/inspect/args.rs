//! The arguments of `inspect`.

use crate::args::{SpecArgs, parse};
use crate::colour::ColourChoice;
use clap::Parser;
use llama_spec::compat::Conditions;
use llama_spec::options::{FlashAttention, KvType, SplitMode};
use std::path::PathBuf;

/// Say what model files are, and whether they work together
///
/// Reads the headers of the files and never their weights. Without --spec the method is chosen from what the files are,
/// as `generate` and `chat` do; each rule that was looked at is listed with what it compares, and a way out where it
/// does not hold.
#[derive(Clone, Debug, Parser)]
#[command(name = "inspect", version, max_term_width = 110, after_help = EXAMPLES)]
pub struct InspectArgs {
    /// The model that decides: a GGUF file, or the first part of a split one
    #[arg(value_name = "TARGET")]
    pub target: PathBuf,

    /// The model that drafts for it
    #[arg(short, long, value_name = "FILE")]
    pub draft: Option<PathBuf>,

    /// How to speculate.
    #[command(flatten)]
    pub spec: SpecArgs,

    /// Room for prompt and answer together, in tokens; 0 is what the model was trained for
    #[arg(short, long, value_name = "N", default_value_t = 4096, allow_negative_numbers = true, value_parser = parse::context, help_heading = "Settings")]
    pub context: u32,
    /// Sequences side by side
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true, help_heading = "Settings")]
    pub slots: u32,
    /// The most tokens handed to the model in one call
    #[arg(long, value_name = "N", default_value_t = 2048, allow_negative_numbers = true, help_heading = "Settings")]
    pub batch: u32,
    /// The most tokens computed at once
    #[arg(long, value_name = "N", default_value_t = 512, allow_negative_numbers = true, help_heading = "Settings")]
    pub ubatch: u32,
    /// The type of K in the cache: f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0 or iq4_nl
    #[arg(long, value_name = "TYPE", default_value = "f16", value_parser = parse::word::<KvType>, help_heading = "Settings")]
    pub kv_type_k: KvType,
    /// The type of V in the cache
    #[arg(long, value_name = "TYPE", default_value = "f16", value_parser = parse::word::<KvType>, help_heading = "Settings")]
    pub kv_type_v: KvType,
    /// The fused attention kernels: auto, on or off
    #[arg(long, value_name = "MODE", default_value = "auto", value_parser = parse::word::<FlashAttention>, help_heading = "Settings")]
    pub flash_attn: FlashAttention,
    /// How the model is divided among GPUs: none, layer, row or tensor
    #[arg(long, value_name = "MODE", default_value = "layer", value_parser = parse::word::<SplitMode>, help_heading = "Settings")]
    pub split_mode: SplitMode,
    /// Prompts contain images or sound
    #[arg(long, help_heading = "Settings")]
    pub multimodal: bool,
    /// Allow what usually works and can crash
    #[arg(long, help_heading = "Settings")]
    pub accept_risk: bool,

    /// Write one JSON object: verdict, target, draft, requested, effective, reason, memory and checks
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// When to use colours
    #[arg(long, value_name = "WHEN", value_enum, default_value_t, help_heading = "Output")]
    pub color: ColourChoice,
}

const EXAMPLES: &str = "\
Examples:
  inspect model.gguf
  inspect large.gguf --draft small.gguf --slots 4 --context 8192
  inspect gemma-4.gguf --draft gemma-4-assistant.gguf --json

Exit status: 0 works, 2 wrong usage, 3 files and settings that do not go together, 4 a file is broken or no model.";

impl InspectArgs {
    /// The settings under which the files are to work together; those of the cache are the draft's, too.
    pub fn conditions(&self) -> Conditions {
        Conditions::default()
            .context(self.context)
            .slots(self.slots)
            .batch(self.batch)
            .micro_batch(self.ubatch)
            .kv_types(self.kv_type_k, self.kv_type_v)
            .draft_kv_types(self.kv_type_k, self.kv_type_v)
            .flash_attention(self.flash_attn)
            .split_mode(self.split_mode)
            .multimodal(self.multimodal)
            .accept_risk(self.accept_risk)
    }
}

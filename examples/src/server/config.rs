//! The settings of the server: one definition for flags, environment and file.

mod layers;
mod print;

pub use layers::{Wanted, read};

use crate::args::{ModelArgs, SpecArgs, parse};
use crate::colour::ColourChoice;
use crate::logging::LogFormat;
use crate::server::fault::Fault;
use clap::Parser;
use clap::builder::NonEmptyStringValueParser;
use llama_spec::options::{FlashAttention, KvType, SplitMode};
use std::path::PathBuf;
use std::time::Duration;

/// Serve a language model over HTTP, made faster by speculative decoding
///
/// Answers as OpenAI's API and llama-server do, and has a page to try it at /. The engine runs in a process of its own:
/// when that dies, it is started again and the texts go on. It is ready only after it was tried, and what cannot work is
/// refused before the port is opened.
#[derive(Clone, Debug, Parser)]
#[command(name = "server", version, max_term_width = 110, after_help = EXAMPLES)]
pub struct Flags {
    /// The models.
    #[command(flatten)]
    pub model: ModelArgs,
    /// The type of K in the cache: f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0 or iq4_nl
    #[arg(long, value_name = "TYPE", default_value = "f16", value_parser = parse::word::<KvType>, help_heading = "Model")]
    pub kv_type_k: KvType,
    /// The type of V in the cache
    #[arg(long, value_name = "TYPE", default_value = "f16", value_parser = parse::word::<KvType>, help_heading = "Model")]
    pub kv_type_v: KvType,
    /// The fused attention kernels: auto, on or off
    #[arg(long, value_name = "MODE", default_value = "auto", value_parser = parse::word::<FlashAttention>, help_heading = "Model")]
    pub flash_attn: FlashAttention,
    /// How the model is divided among GPUs: none, layer, row or tensor
    #[arg(long, value_name = "MODE", default_value = "layer", value_parser = parse::word::<SplitMode>, help_heading = "Model")]
    pub split_mode: SplitMode,
    /// The name under which clients know the model [default: that of the file]
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new(), help_heading = "Model")]
    pub alias: Option<String>,
    /// A file with another chat template (Jinja) than the model's own
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub chat_template_file: Option<PathBuf>,

    /// How to speculate.
    #[command(flatten)]
    pub spec: SpecArgs,
    /// MiB of memory for texts of earlier requests, from which `lookup` drafts for later ones with the same key; 0 keeps none
    ///
    /// Prompts and answers are kept, and those dropped that are of the least use. Nothing of one key is ever drafted for another;
    /// without keys all clients share their texts. Answers do not depend on it, but how fast they are does.
    #[arg(long, value_name = "MIB", default_value_t = 64, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(0..=1 << 20), help_heading = "Speculation")]
    pub store_mib: u32,
    /// A file in which these texts outlive the server, readable for its owner only: written every minute and at the end
    #[arg(long, value_name = "FILE", help_heading = "Speculation")]
    pub store_file: Option<PathBuf>,

    /// Texts that are generated at once; each has a --context of its own
    #[arg(long, value_name = "N", default_value_t = 4, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=256), help_heading = "Engine")]
    pub slots: u32,
    /// Requests that may wait for a slot; more are sent away with status 429
    #[arg(long, value_name = "N", default_value_t = 64, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(0..=1 << 20), help_heading = "Engine")]
    pub queue: u32,
    /// Serve without having tried the engine
    #[arg(long, help_heading = "Engine")]
    pub no_probe: bool,
    /// Run the engine in the server's own process: when it dies, the server does
    #[arg(long, help_heading = "Engine")]
    pub no_supervise: bool,
    /// Seconds without progress after which the engine counts as stuck and is started again; slow ones get more
    #[arg(long, value_name = "SECONDS", default_value = "30", allow_negative_numbers = true, value_parser = patience, help_heading = "Engine")]
    pub patience: Duration,
    /// Break on purpose, as CONTRIBUTING says.
    #[arg(long, value_name = "KIND@N", hide = true, help_heading = "Engine")]
    pub inject_fault: Option<Fault>,

    /// The address to listen on; anything but this machine's own needs a key
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", value_parser = NonEmptyStringValueParser::new(), help_heading = "Network")]
    pub host: String,
    /// The port to listen on; 0 takes any that is free
    #[arg(long, value_name = "N", default_value_t = 8080, allow_negative_numbers = true, help_heading = "Network")]
    pub port: u16,
    /// A key that clients must give, as `Authorization: Bearer KEY` or `X-Api-Key: KEY` (may be repeated)
    ///
    /// Others on this machine can see the arguments of programs: better put it into --api-key-file or LLAMA_SPEC_API_KEY.
    #[arg(long, value_name = "KEY", value_delimiter = ',', help_heading = "Network")]
    pub api_key: Vec<String>,
    /// A file with such keys, one a line; lines that begin with # are comments
    #[arg(long, value_name = "FILE", help_heading = "Network")]
    pub api_key_file: Option<PathBuf>,
    /// Serve whoever can reach the address, without a key
    #[arg(long, help_heading = "Network")]
    pub allow_public_without_key: bool,
    /// Let whoever has no key load and unload models, where no key is set
    #[arg(long, help_heading = "Network")]
    pub allow_admin_without_key: bool,
    /// Let pages of this origin, such as `https://example.org`, use the server; `*` is any (may be repeated)
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',', help_heading = "Network")]
    pub cors_origin: Vec<String>,

    /// The largest body of a request in MiB
    #[arg(long, value_name = "MIB", default_value_t = 8, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = "Limits")]
    pub max_body: u32,
    /// The longest prompt in KiB
    #[arg(long, value_name = "KIB", default_value_t = 4096, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1 << 20), help_heading = "Limits")]
    pub max_prompt: u32,
    /// Connections that are open at once
    #[arg(long, value_name = "N", default_value_t = 512, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1 << 20), help_heading = "Limits")]
    pub max_connections: u32,
    /// Seconds that a connection may be open without the head of a (next) request having come
    #[arg(long, value_name = "SECONDS", default_value = "30", allow_negative_numbers = true, value_parser = seconds, help_heading = "Limits")]
    pub header_timeout: Duration,
    /// Seconds that the body of a request may take to come
    #[arg(long, value_name = "SECONDS", default_value = "30", allow_negative_numbers = true, value_parser = seconds, help_heading = "Limits")]
    pub body_timeout: Duration,
    /// Seconds that a client may leave an answer unread before it is dropped
    #[arg(long, value_name = "SECONDS", default_value = "30", allow_negative_numbers = true, value_parser = seconds, help_heading = "Limits")]
    pub write_timeout: Duration,
    /// Seconds that running answers are given to end when the server is stopped
    #[arg(long, value_name = "SECONDS", default_value = "30", allow_negative_numbers = true, value_parser = seconds, help_heading = "Limits")]
    pub grace: Duration,

    /// How log lines are written to standard error
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t, help_heading = "Output")]
    pub log_format: LogFormat,
    /// Log more; RUST_LOG chooses exactly, such as RUST_LOG=server=debug,llama_spec=info
    #[arg(short, long, help_heading = "Output")]
    pub verbose: bool,
    /// When to use colours
    #[arg(long, value_name = "WHEN", value_enum, default_value_t, help_heading = "Output")]
    pub color: ColourChoice,

    /// A file (TOML) with any of these settings by their long names, such as `port = 8080`
    #[arg(long, value_name = "FILE", help_heading = "Configuration")]
    pub config: Option<PathBuf>,
    /// Write all settings as such a file, with where each comes from, and end
    #[arg(long, help_heading = "Configuration")]
    pub print_config: bool,
}

const EXAMPLES: &str = "\
Each option can also be given by the environment, such as LLAMA_SPEC_PORT for --port (several values separated by
commas), or by the file of --config. A flag goes before the environment, and that before the file.

Examples:
  server --model model.gguf
  server --model large.gguf --draft small.gguf --slots 8 --context 8192
  server --config server.toml --host 0.0.0.0 --api-key-file keys.txt
  curl http://127.0.0.1:8080/v1/chat/completions -H 'Content-Type: application/json' \\
       -d '{\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}'

Exit status: 0 stopped by a signal, 1 failed, 2 wrong usage, 3 files and settings that do not go together (with the
report of `inspect`), 4 a file is broken or no model.";

fn seconds(text: &str) -> Result<Duration, String> {
    at_least(0, text)
}

/// An engine that is taken for stuck at once never gets anywhere.
fn patience(text: &str) -> Result<Duration, String> {
    at_least(1, text)
}

fn at_least(least: u32, text: &str) -> Result<Duration, String> {
    /// A week: more is a mistake.
    const MOST: f64 = 604_800.0;
    let number = text.parse::<f64>().ok().filter(|seconds| (least.into()..=MOST).contains(seconds));
    number.map(Duration::from_secs_f64).ok_or_else(|| format!("expected a number of seconds from {least} to {MOST}"))
}

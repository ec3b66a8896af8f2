//! What a worker loads: files and settings, as plain data.

use crate::context::ContextOptions;
use crate::options::{GpuLayers, SplitMode};
use crate::spec::SpecConfig;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// The files of an engine, and how it is made: what [`EngineBuilder`](crate::EngineBuilder) takes, as data that can be sent,
/// compared and written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Load {
    /// The target: a GGUF file, or the first part of a split one.
    pub model: PathBuf,
    /// What drafts, if a file of its own.
    pub draft: Option<PathBuf>,
    /// The methods of speculation. Default: what the files are made for.
    pub speculation: Option<SpecConfig>,
    /// Take the best that works when what was asked for cannot be had.
    pub degrade: bool,
    /// The target's context: slots, their room, threads.
    pub context: ContextOptions,
    /// Layers of the target that are kept on GPUs.
    pub gpu_layers: GpuLayers,
    /// Layers of the draft that are kept on GPUs. Default: as those of the target.
    pub draft_gpu_layers: Option<GpuLayers>,
    /// How models are divided among several GPUs.
    pub split_mode: SplitMode,
    /// Accept what usually works and can end the process, by the rules of [`compat`](crate::compat): a worker is replaced. Default: it
    /// is accepted; for an engine in the program's own process better not.
    pub accept_risk: bool,
    /// Requests that may wait while all slots are in use.
    pub queue: usize,
    /// Try the engine before it serves.
    pub probe: bool,
    /// How long that may take.
    pub probe_budget: Duration,
    /// A folder where reports of trials are kept.
    pub probe_cache: Option<PathBuf>,
    /// Tokens that are verified in one batch. Default: as many as are exact.
    pub verify_rows: Option<u32>,
    /// A chat template (Jinja) in place of the model's own.
    pub chat_template: Option<String>,
    /// Bytes of the texts that are kept for lookup ([`EngineBuilder::lookup_store`](crate::EngineBuilder::lookup_store)); 0 for no
    /// such texts.
    pub store_bytes: usize,
    /// A file in which they outlive the worker: read when it loads, written every minute and when it ends. One that is
    /// damaged or of another vocabulary is begun anew, with a warning in the log; one that is something else is left as it is.
    pub store_file: Option<PathBuf>,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            model: PathBuf::new(),
            draft: None,
            speculation: None,
            degrade: false,
            context: ContextOptions::default(),
            gpu_layers: GpuLayers::default(),
            draft_gpu_layers: None,
            split_mode: SplitMode::default(),
            accept_risk: true,
            queue: 256,
            probe: true,
            probe_budget: Duration::from_secs(2),
            probe_cache: None,
            verify_rows: None,
            chat_template: None,
            store_bytes: 0,
            store_file: None,
        }
    }
}

impl Load {
    /// This model, with the usual settings.
    pub fn new(model: impl Into<PathBuf>) -> Self {
        Self { model: model.into(), ..Self::default() }
    }
}

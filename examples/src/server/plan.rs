//! What is going to be loaded, held against the rules before anything else happens.

use super::config::Flags;
use crate::failure::{Failure, tell};
use crate::inspect;
use crate::load::{self, open};
use crate::prompt::utf8;
use llama_spec::Error;
use llama_spec::compat::{Conditions, Report};
use llama_spec::context::ContextOptions;
use llama_spec::options::GpuLayers;
use llama_spec::supervise::Load;
use std::fs;
use std::path::Path;

/// What is going to be loaded.
#[derive(Debug)]
pub struct Plan {
    /// For the engine.
    pub load: Load,
    /// What is known of it from the headers.
    pub report: Report,
    /// What the files would be used for by themselves, and cannot be here.
    pub doubt: Option<String>,
    /// The name under which clients know the model.
    pub name: String,
}

impl Plan {
    /// Opens the files and holds them against each other and the settings.
    ///
    /// # Errors
    /// What is wrong with a file; [`Failure::Verdict`] when they do not go together, with the report of `inspect` on standard
    /// output.
    pub fn new(flags: &Flags) -> Result<Self, Failure> {
        let target = open(&flags.model.model)?;
        let draft = flags.model.draft.as_deref().map(open).transpose()?;
        let chat_template = flags.chat_template_file.as_deref().map(template).transpose()?;
        let context = flags.model.context_options(target.description().trained_context).slots(flags.slots);
        let context = context.kv_types(flags.kv_type_k, flags.kv_type_v).flash_attention(flags.flash_attn);
        check(flags, &context, target.description().trained_context)?;
        flags.store_file.as_deref().map(|path| check_store(path, flags.store_mib)).transpose()?;
        let conditions = Conditions::from(&context).split_mode(flags.split_mode).supervised(!flags.no_supervise);

        let config = flags.spec.config(&target, draft.as_ref(), &conditions);
        let report = Report::new(&target, draft.as_ref(), Some(&config), &conditions);
        let asked = flags.spec.spec.is_some() || draft.is_some();
        let doubt = match config.check(&target, draft.as_ref(), &conditions) {
            Ok(_) => None,
            // What is no language model is not made one by doing without drafts.
            Err(_) if asked || !target.kind().is_generative() => {
                inspect::show(&report)?;
                tell("these files and settings do not go together: see the report");
                return Err(Failure::Verdict(3));
            }
            Err(why) => Some(why.to_string()),
        };

        let mut load = Load::new(&flags.model.model);
        load.draft = flags.model.draft.clone();
        // What nobody asked for is left to the engine, which finds the same.
        load.speculation = flags.spec.is_given().then_some(config);
        load.degrade = !asked;
        load.context = context;
        load.gpu_layers = flags.model.gpu_layers;
        load.draft_gpu_layers = flags.model.draft_gpu_layers;
        load.split_mode = flags.split_mode;
        load.accept_risk = !flags.no_supervise;
        load.queue = flags.queue as usize;
        load.probe = !flags.no_probe;
        load.chat_template = chat_template;
        load.store_bytes = (flags.store_mib as usize).saturating_mul(1 << 20);
        load.store_file = flags.store_file.clone();
        let name = flags.alias.clone().unwrap_or_else(|| name(&flags.model.model));
        Ok(Self { load, report, doubt, name })
    }
}

/// Refuses settings that cannot work with any files, in the words of the flags.
fn check(flags: &Flags, context: &ContextOptions, trained: Option<u32>) -> Result<(), Failure> {
    for (flag, layers) in [("gpu", Some(flags.model.gpu_layers)), ("draft-gpu", flags.model.draft_gpu_layers)] {
        let wants = matches!(layers, Some(GpuLayers::All | GpuLayers::Count(1..)));
        if wants && !load::BUILT_FOR_GPUS {
            let message = format!("--{flag}-layers: this program was built without support for GPUs");
            return Err(Failure::Usage(message));
        }
    }
    let tokens = if context.length_per_slot == 0 { trained.unwrap_or(0) } else { context.length_per_slot };
    context.clone().length_per_slot(tokens).validate().map_err(|error| match error {
        Error::Setting { setting: "length_per_slot", value, expected } => {
            Failure::Usage(format!("--context {tokens} in --slots {} is {value} tokens: {expected}", context.slots))
        }
        Error::Setting { setting: "kv_type_v", .. } => {
            let message = "--kv-type-v: a quantized type needs the fused kernels, which --flash-attn off rules out";
            Failure::Usage(message.into())
        }
        other => other.into(),
    })
}

/// Whether texts can be kept in this file. What is in it is looked at when the vocabulary is known.
fn check_store(path: &Path, mib: u32) -> Result<(), Failure> {
    let wrong = |why: String| Err(Failure::Usage(format!("--store-file {}: {why}", path.display())));
    if mib == 0 {
        return wrong("nothing is kept with --store-mib 0".into());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match fs::metadata(folder) {
        Err(why) => wrong(format!("the folder {}: {why}", folder.display())),
        Ok(found) if !found.is_dir() => wrong(format!("{} is no folder", folder.display())),
        Ok(_) if path.file_name().is_none() || path.is_dir() => wrong("expected the name of a file".into()),
        Ok(_) => Ok(()),
    }
}

/// The text of a file.
fn template(path: &Path) -> Result<String, Failure> {
    let from = path.display().to_string();
    let bytes = fs::read(path).map_err(|source| Failure::Input { from: from.clone(), source })?;
    utf8(bytes, from)
}

/// The name of a file without its ending.
fn name(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

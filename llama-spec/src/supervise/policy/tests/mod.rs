//! The state machine as a whole.

mod random;
mod scenarios;

use super::{Action, Event};
use crate::options::{FlashAttention, SplitMode};
use crate::spec::{Method, SpecConfig, Speculation};
use crate::supervise::{Load, RefusalKind};

/// A target, with a draft where the methods need one.
fn load(speculation: Option<&[Method]>) -> Load {
    let speculation = speculation.map(SpecConfig::new);
    let draft = speculation.as_ref().is_none_or(SpecConfig::needs_draft).then(|| "draft.gguf".into());
    Load { draft, speculation, ..Load::new("target.gguf") }
}

/// With tensor parallelism.
fn tensor(load: Load) -> Load {
    Load { split_mode: SplitMode::Tensor, ..load }
}

fn asked(load: &Load) -> Event {
    Event::Load(Box::new(load.clone()))
}

fn loaded(worker: u64, methods: &[Method]) -> Event {
    let speculation = Speculation { requested: methods.into(), effective: methods.into(), ..Speculation::default() };
    Event::Loaded { worker, speculation }
}

fn refused(worker: u64, kind: RefusalKind) -> Event {
    Event::Refused { worker, kind, message: format!("/a/path: {kind:?}") }
}

fn gone(worker: u64) -> Event {
    Event::Gone { worker, what: "the worker died (signal 6: abort)".into(), log: vec!["its last line".into()] }
}

fn broken(worker: u64) -> Event {
    Event::Broken { worker, what: "the worker made no progress for 30 s".into(), log: Vec::new() }
}

fn tick() -> Event {
    Event::Tick { busy: false }
}

fn busy() -> Event {
    Event::Tick { busy: true }
}

/// What a load is, in short.
fn short(load: &Load) -> String {
    let mut words = Vec::new();
    if load.split_mode == SplitMode::Tensor {
        words.push("tensor".to_owned());
    }
    if load.context.flash_attention == FlashAttention::Off {
        words.push("no-flash".to_owned());
    }
    words.push(match &load.speculation {
        None => "auto".to_owned(),
        Some(config) if config.is_off() => "plain".to_owned(),
        Some(config) => config.names(),
    });
    if load.draft.is_some() {
        words.push("+draft".to_owned());
    }
    words.join(" ")
}

/// What is done, in short, without what is recorded.
fn done(actions: &[Action]) -> Vec<String> {
    let done = actions.iter().filter_map(|action| {
        Some(match action {
            Action::Start { worker, load, .. } => format!("start {worker}: {}", short(load)),
            Action::Load { worker, load, .. } => format!("load {worker}: {}", short(load)),
            Action::Serve { worker } => format!("serve {worker}"),
            Action::End { worker } => format!("end {worker}"),
            Action::Kill { worker } => format!("kill {worker}"),
            Action::Reject(why) => format!("reject {:?}", why.kind),
            Action::GiveUp(why) => format!("give up {:?}", why.kind),
            Action::Record(_) => return None,
        })
    });
    done.collect()
}

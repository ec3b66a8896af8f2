//! Makes the description of a model out of its headers.

use super::classify::{self, Signs};
use super::description::{Description, DraftVocabulary};
use super::facts::{Facts, Need};
use super::hyper::Hyper;
use super::tokenizer::Tokenizer;
use super::{Kind, layers, quantization, shapes, vocabulary};
use crate::arch::{Architecture, MultiAxis, OutputWidth};
use crate::gguf::{Header, TensorInfo, Value};
use std::path::PathBuf;
use std::sync::Arc;

/// Reads bytes of a part: for the one small tensor whose content is needed. False when they are not there.
pub(super) type ReadPart<'r> = dyn FnMut(usize, u64, &mut [u8]) -> bool + 'r;

/// Describes the model of these headers, one for each part.
pub(super) fn describe(
    parts: &[PathBuf],
    headers: &[Arc<Header>],
    read: &mut ReadPart<'_>,
) -> (Description, Option<Tokenizer>) {
    let path = parts.first().cloned().unwrap_or_default();
    let first = headers.first().expect("a model has at least one part");
    let name = match first.value("general.architecture") {
        Some(Value::Text(text)) => Some(String::from_utf8_lossy(crate::gguf::until_zero(text)).into_owned()),
        _ => None,
    };
    let mut facts = Facts::new(headers, name.as_deref().unwrap_or_default());
    let mut description = Description {
        path,
        parts: parts.to_vec(),
        architecture: name.clone(),
        name: match first.value("general.name") {
            Some(Value::Text(text)) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        },
        quantization: quantization::name(&facts),
        file_bytes: sum(headers.iter().map(|header| header.file_bytes())),
        weight_bytes: sum(facts.tensors().map(|tensor| tensor.bytes())),
        parameters: sum(facts.tensors().map(|tensor| tensor.elements())),
        chat_template: facts.value("tokenizer.chat_template").is_some(),
        own_embeddings: facts.has("token_embd.weight"),
        own_head: facts.has("output.weight"),
        trunk: true,
        causal: true,
        ..Description::default()
    };
    if let Some(kind) = classify::no_model(&facts, name.as_deref()) {
        description.kind = kind;
        return (description, None);
    }
    let architecture = name.as_deref().and_then(Architecture::find);
    let tokenizer = match architecture {
        Some(architecture) => model(&mut description, &mut facts, architecture, first, read),
        None => {
            unknown(&mut facts, first, name.as_deref());
            None
        }
    };
    description.defects = facts.defects;
    (description, tokenizer)
}

/// Notes why a file is none that llama.cpp knows.
fn unknown(facts: &mut Facts<'_>, header: &Header, name: Option<&str>) {
    const KEY: &str = "general.architecture";
    match (name, header.value(KEY)) {
        (Some(name), _) => facts.refused(KEY, format!("{name:?} is not an architecture that llama.cpp knows")),
        (None, Some(value)) => facts.refused(KEY, format!("of type {}; it must be a text", value.type_name())),
        (None, None) => facts.refused(KEY, "missing: this is not a model"),
    }
}

fn model(
    description: &mut Description,
    facts: &mut Facts<'_>,
    architecture: &'static Architecture,
    header: &Arc<Header>,
    read: &mut ReadPart<'_>,
) -> Option<Tokenizer> {
    let hyper = Hyper::read(facts, architecture.name);
    let layers = hyper.blocks - hyper.mtp_blocks;
    description.mtp_heads =
        hyper.mtp_blocks > 0 && facts.has(&format!("blk.{layers}.nextn.eh_proj.weight")) || is_assistant(architecture);
    let probe = if architecture.name == "qwen4exp" { "blk.0.hc_attn_norm.weight" } else { "blk.0.attn_norm.weight" };
    description.trunk = hyper.mtp_blocks == 0 || facts.has(probe) && !is_assistant(architecture);
    let signs = Signs {
        architecture: Some(architecture),
        mtp_layers: hyper.mtp_blocks,
        mtp_heads: description.mtp_heads,
        trunk: description.trunk,
        causal: hyper.causal,
        pooling: hyper.pooling,
    };
    description.kind = classify::model(facts, signs);
    let seen = layers::read(facts, architecture, hyper.blocks, layers, &hyper.kv_heads);
    let trunk = |numbers: &[u32]| numbers.iter().take(layers as usize).copied().collect::<Vec<_>>();

    description.trained_context = hyper.context;
    description.width = hyper.width;
    description.output_width = output_width(facts, architecture, &hyper);
    description.block_count = (hyper.blocks > 0).then_some(hyper.blocks);
    description.layers = layers;
    description.mtp_layers = hyper.mtp_blocks;
    description.layer_kinds = seen.kinds;
    description.sliding_window = seen.window;
    description.heads = trunk(&hyper.heads);
    description.kv_heads = trunk(&hyper.kv_heads);
    let length = |length: u32| (length > 0).then_some(length);
    description.key_length = length(hyper.key_length);
    description.value_length = length(hyper.value_length);
    description.key_length_swa = length(hyper.key_length_swa);
    description.value_length_swa = length(hyper.value_length_swa);
    description.shared_layers = shared_layers(facts, architecture, &hyper);
    description.latent_attention = facts.value(&facts.key("attention.key_length_mla")).is_some();
    description.experts = length(hyper.experts);
    description.experts_used = length(hyper.experts_used);
    description.causal = hyper.causal;
    description.pooling = hyper.pooling;
    description.multi_axis_rope = multi_axis(facts, architecture);
    description.state_elements = state_elements(facts, &hyper);
    draft_facts(description, facts, architecture, read);

    let tokenizer = vocabulary::read(facts, header);
    description.mask_token = tokenizer.as_ref().and_then(|tokenizer| tokenizer.summary().mask);
    description.tokenizer = tokenizer.as_ref().map(|tokenizer| tokenizer.summary().clone());
    if description.kind == Kind::VocabularyOnly || facts.tensors().next().is_none() {
        facts.refused("tensors", "there are none");
    } else {
        let tokens = tokenizer.as_ref().map(|tokenizer| tokenizer.size());
        let vocabulary = tokens.or_else(|| facts.tensor("token_embd.weight").map(|table| table.full_shape()[1] as u32));
        shapes::check(facts, architecture.name, &hyper, &description.layer_kinds, vocabulary, description);
    }
    tokenizer
}

fn is_assistant(architecture: &Architecture) -> bool {
    architecture.name == "gemma4-assistant"
}

fn output_width(facts: &mut Facts<'_>, architecture: &Architecture, hyper: &Hyper) -> Option<u32> {
    match architecture.output_width {
        OutputWidth::FromKey => hyper.output_width.filter(|&width| width > 0).or(hyper.width),
        OutputWidth::Embedding => hyper.width,
        OutputWidth::HyperConnections => {
            let key = facts.key("hyper_connection.count");
            let count = facts.u32(&key, Need::Required)?;
            hyper.width?.checked_mul(count).filter(|&width| width > 0)
        }
        OutputWidth::One => Some(1),
    }
}

fn multi_axis(facts: &mut Facts<'_>, architecture: &Architecture) -> bool {
    let key = facts.key("rope.dimension_sections");
    match architecture.multi_axis {
        MultiAxis::Never => false,
        MultiAxis::Always => true,
        MultiAxis::WithSections => {
            let sections = facts.per_layer("rope.dimension_sections", 4, Need::Optional);
            match sections {
                // A DFlash draft counts positions in this way whatever its sections are.
                Some(_) if architecture.name == "dflash" => true,
                Some(sections) => sections[0] > 0 && sections[1] > 0,
                None => facts.value(&key).is_some() && architecture.name == "dflash",
            }
        }
    }
}

/// The layers that read what an earlier one keeps.
fn shared_layers(facts: &mut Facts<'_>, architecture: &Architecture, hyper: &Hyper) -> Vec<bool> {
    let own = match architecture.name {
        "gemma4" => {
            let key = facts.key("attention.shared_kv_layers");
            let shared = facts.u32(&key, Need::Optional).unwrap_or(0);
            let own = i64::from(hyper.blocks) - i64::from(shared);
            if hyper.blocks > 0 && !(2..=i64::from(hyper.blocks)).contains(&own) {
                facts.aborts(key, format!("{shared} of {} blocks: at least two need keys of their own", hyper.blocks));
                return Vec::new();
            }
            if shared == 0 {
                return Vec::new();
            }
            own as u32
        }
        "gemma3n" => 20,
        _ => return Vec::new(),
    };
    (0..hyper.blocks - hyper.mtp_blocks).map(|layer| layer >= own).collect()
}

/// What a layer with a state keeps for a sequence: `n_embd_r` and `n_embd_s` in the pinned `src/llama-hparams.cpp`.
fn state_elements(facts: &mut Facts<'_>, hyper: &Hyper) -> u64 {
    let mut number = |suffix: &str, default: u32| {
        let key = facts.key(suffix);
        u64::from(facts.u32(&key, Need::Optional).unwrap_or(default))
    };
    let width = u64::from(hyper.width.unwrap_or(0));
    let heads = u64::from(hyper.heads.first().copied().unwrap_or(0));
    let wkv = number("wkv.head_size", 0);
    if wkv > 0 {
        let shifts = number("token_shift_count", 2);
        return width.saturating_mul(shifts.saturating_add(wkv));
    }
    let short = number("shortconv.l_cache", 0);
    if short > 0 {
        return width.saturating_mul(short - 1);
    }
    let kernel = number("ssm.conv_kernel", 0);
    let kda = number("kda.head_dim", 0);
    if kda > 0 {
        let before = if kernel > 0 { kernel - 1 } else { 3 };
        let inner = heads.saturating_mul(kda);
        return inner.saturating_mul(before.saturating_mul(3).saturating_add(kda));
    }
    let (inner, state, groups) =
        (number("ssm.inner_size", 0), number("ssm.state_size", 0), number("ssm.group_count", 0));
    let channels = inner.saturating_add(groups.saturating_mul(state).saturating_mul(2));
    kernel.saturating_sub(1).saturating_mul(channels).saturating_add(state.saturating_mul(inner))
}

/// What drafts that depend on a target have.
fn draft_facts(
    description: &mut Description,
    facts: &mut Facts<'_>,
    architecture: &Architecture,
    read: &mut ReadPart<'_>,
) {
    match architecture.name {
        "eagle3" => {
            let key = facts.key("target_layers");
            description.target_layers = facts.integers(&key, Need::Required, 4096).unwrap_or_default();
            if !description.target_layers.is_empty() && description.target_layers.len() != 3 {
                facts.refused(key, format!("{} layers; 3 are expected", description.target_layers.len()));
            }
            let key = facts.key("target_hidden_size");
            description.target_width = facts.u32(&key, Need::Required);
            for suffix in ["norm_before_residual", "norm_before_fc"] {
                facts.bool(&facts.key(suffix), Need::Optional);
            }
            if description.layers > 0 && description.block_count != Some(1) {
                let why = format!("{} blocks; an EAGLE-3 draft has 1", description.layers);
                facts.aborts(facts.key("block_count"), why);
            }
        }
        "dflash" => {
            let key = facts.key("target_layers");
            description.target_layers = facts.integers(&key, Need::Required, 4096).unwrap_or_default();
            if facts.value(&key).is_some() && description.target_layers.is_empty() {
                facts.aborts(key, "no layers of the target");
            }
            description.target_width = description.width;
            let key = facts.key("block_size");
            description.block_size = facts.u32(&key, Need::Optional);
            if description.kind == Kind::Dspark && description.block_size.is_none_or(|size| size == 0) {
                facts.aborts(key, "a DSpark draft must have a block size");
            }
            let says = facts.bool(&facts.key("has_confidence_head"), Need::Optional);
            description.confidence_head = says.unwrap_or_else(|| facts.has("conf_proj.weight"));
        }
        "gemma4-assistant" => description.target_width = description.output_width,
        _ => {}
    }
    let Some(map) = facts.tensor("d2t") else { return };
    let range = if map.kind.name == "i64" { read_map(&map, read) } else { None };
    description.draft_vocabulary = Some(DraftVocabulary {
        kind: map.kind.name,
        size: map.full_shape()[0],
        smallest: range.map(|(smallest, _)| smallest),
        largest: range.map(|(_, largest)| largest),
    });
    if map.kind.name != "i64" {
        facts.aborts("d2t", format!("of type {}; it must be i64", map.kind.name));
    } else if let Some((smallest, _)) = range
        && smallest < 0
    {
        facts.aborts("d2t", format!("it has the negative id {smallest}"));
    }
}

/// The least and the greatest number in a map of ids.
fn read_map(map: &TensorInfo<'_>, read: &mut ReadPart<'_>) -> Option<(i64, i64)> {
    /// Four million ids: a vocabulary has some hundred thousand.
    const MOST_BYTES: u64 = 32 << 20;
    if map.bytes() > MOST_BYTES {
        return None;
    }
    let mut range: Option<(i64, i64)> = None;
    let mut buffer = [0; 8 << 10];
    let mut at = 0;
    while at < map.bytes() {
        let length = (map.bytes() - at).min(buffer.len() as u64) as usize;
        let bytes = &mut buffer[..length];
        if !read(map.part, map.offset + at, bytes) {
            return None;
        }
        for id in bytes.as_chunks().0.iter().map(|id| i64::from_le_bytes(*id)) {
            let (smallest, largest) = range.unwrap_or((id, id));
            range = Some((smallest.min(id), largest.max(id)));
        }
        at += length as u64;
    }
    range
}

fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

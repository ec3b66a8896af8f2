//! What each layer keeps in memory: read from the loaders of the architectures in `src/models/` of the pinned llama.cpp.

use super::description::LayerKind;
use super::facts::{Facts, Need};
use crate::arch::{Architecture, MemoryKind};
use crate::gguf::Value;

/// The most blocks that llama.cpp has room for.
pub(super) const MOST_BLOCKS: u32 = 512;

/// The kinds of the layers below the MTP heads, and the window.
#[derive(Debug, Default)]
pub(super) struct Layers {
    pub(super) kinds: Vec<LayerKind>,
    pub(super) window: Option<u32>,
}

/// How an architecture tells the layers with a sliding window.
#[derive(Clone, Copy, Debug)]
enum Window {
    /// It has none, whatever the file says.
    None,
    /// An array in the file, or every so many layers one without; the first of each group if `dense_first`.
    Every { period: u32, dense_first: bool, length: Length },
    /// An array in the file, which must be there.
    Listed { length: Length },
    /// All layers.
    All,
}

/// Where the length of the window comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    /// The file, which must say it.
    Required,
    /// The file; without it, or with 0, no layer has a window.
    IfThere,
    /// The file, or this many tokens.
    Default(u32),
    /// This many tokens, unless the file says 0.
    Fixed(u32),
    /// This many tokens if the file has any but 0.
    FixedIfThere(u32),
}

fn window_of(name: &str, layers: u32) -> Window {
    let every = |period, length| Window::Every { period, dense_first: false, length };
    let dense_first = |period, length| Window::Every { period, dense_first: true, length };
    match name {
        "gemma2" => every(2, Length::Default(4096)),
        "gemma3" => every(6, Length::IfThere),
        "gemma3n" => every(5, Length::Required),
        "gemma-embedding" | "gemma-embedding2" => every(6, Length::Required),
        "gpt-oss" => every(2, Length::Required),
        "cohere2" | "muse-glimmer" | "limite" | "exaone-moe" => every(4, Length::Required),
        "cohere2moe" => dense_first(4, Length::Required),
        "afmoe" | "mellum" | "olmo2" => every(4, Length::IfThere),
        "laguna" => dense_first(4, Length::IfThere),
        "modern-bert" => dense_first(3, Length::IfThere),
        "plamo3" => every(8, Length::IfThere),
        "smallthinker" => dense_first(4, Length::FixedIfThere(4096)),
        "llama4" => every(4, Length::Fixed(8192)),
        "exaone4" if layers == 64 => every(4, Length::Default(4096)),
        "gemma4" | "gemma4-assistant" | "mimo2" | "step35" | "spark2_5" | "muse-spark" | "maple" | "maion-coder"
        | "lfm3" | "kolibri1" | "granite_swa" | "flint" | "dots3note" | "beam" => {
            Window::Listed { length: Length::Required }
        }
        "dflash" => Window::Listed { length: Length::IfThere },
        "deepseek4" => Window::All,
        _ => Window::None,
    }
}

/// Reads the kinds of `trunk` layers out of `blocks` blocks.
pub(super) fn read(
    facts: &mut Facts<'_>,
    architecture: &Architecture,
    blocks: u32,
    trunk: u32,
    kv_heads: &[u32],
) -> Layers {
    let recurrent = recurrent(facts, architecture, blocks, trunk, kv_heads);
    let (windowed, window) = windowed(facts, architecture.name, blocks, trunk, &recurrent);
    let kinds = recurrent.iter().zip(windowed).map(|(&recurrent, windowed)| match (recurrent, windowed) {
        (Some(kind), _) => kind,
        (None, true) => LayerKind::SlidingWindow,
        (None, false) => LayerKind::Attention,
    });
    let kinds = kinds.take(trunk as usize).collect();
    Layers { kinds, window }
}

/// The layers that are not plain attention.
fn recurrent(
    facts: &mut Facts<'_>,
    architecture: &Architecture,
    blocks: u32,
    trunk: u32,
    kv_heads: &[u32],
) -> Vec<Option<LayerKind>> {
    let all = |kind| vec![kind; blocks as usize];
    let kv = |layer: usize| kv_heads.get(layer).copied().unwrap_or(0);
    match architecture.name {
        _ if architecture.memory == MemoryKind::Recurrent => all(Some(LayerKind::Recurrent)),
        "falcon-h1" => all(Some(LayerKind::AttentionAndState)),
        "qwen35" | "qwen35moe" | "qwen3next" | "qwen4exp" | "minimax-01" => {
            if let Some(listed) = facts.per_layer("attention.recurrent_layers", blocks, Need::Optional) {
                return listed.into_iter().map(|flag| (flag != 0).then_some(LayerKind::Recurrent)).collect();
            }
            let default = if architecture.name == "minimax-01" { 8 } else { 4 };
            let key = facts.key("full_attention_interval");
            let interval = facts.u32(&key, Need::Optional).unwrap_or(default);
            if interval == 0 {
                facts.aborts(key, "0; it must be at least 1");
                return all(None);
            }
            let kind = |layer: u32| layer < trunk && !(layer + 1).is_multiple_of(interval);
            (0..blocks).map(|layer| kind(layer).then_some(LayerKind::Recurrent)).collect()
        }
        "nemotron_h" | "nemotron_h_moe" => {
            let feed_forward = facts.per_layer("feed_forward_length", blocks, Need::Optional).unwrap_or_default();
            (0..blocks as usize)
                .map(|layer| match (kv(layer), feed_forward.get(layer).copied().unwrap_or(0)) {
                    (0, 0) if layer < trunk as usize => Some(LayerKind::Recurrent),
                    (0, _) => Some(LayerKind::Nothing),
                    _ => None,
                })
                .collect()
        }
        _ if architecture.memory == MemoryKind::Hybrid => {
            (0..blocks as usize).map(|layer| (kv(layer) == 0).then_some(LayerKind::Recurrent)).collect()
        }
        _ => all(None),
    }
}

/// Which layers have a window, and its length.
fn windowed(
    facts: &mut Facts<'_>,
    name: &str,
    blocks: u32,
    trunk: u32,
    recurrent: &[Option<LayerKind>],
) -> (Vec<bool>, Option<u32>) {
    const LENGTH: &str = "attention.sliding_window";
    const PATTERN: &str = "attention.sliding_window_pattern";
    let none = (vec![false; blocks as usize], None);
    let length_key = facts.key(LENGTH);
    match window_of(name, trunk) {
        Window::None if name.starts_with("lfm2") => match facts.u32(&length_key, Need::Optional) {
            Some(length @ 1..) => (recurrent.iter().map(Option::is_none).collect(), Some(length)),
            _ => none,
        },
        Window::None => none,
        Window::All => {
            let length = facts.u32(&length_key, Need::Required);
            (vec![true; blocks as usize], length)
        }
        Window::Every { period, dense_first, length } => {
            let Some(length) = read_length(facts, &length_key, length) else { return none };
            let key = facts.key(PATTERN);
            if let Some(Value::Array(_)) = facts.value(&key) {
                return (listed(facts, &key, blocks, Need::Optional), Some(length));
            }
            let period = facts.u32(&key, Need::Optional).unwrap_or(period);
            let windowed = |layer: u32| {
                layer < trunk
                    && (period == 0
                        || if dense_first { !layer.is_multiple_of(period) } else { layer % period < period - 1 })
            };
            ((0..blocks).map(windowed).collect(), Some(length))
        }
        // A DFlash draft with one of the large backbones has a window in every layer.
        Window::Listed { length: Length::IfThere }
            if ["hyper_connection.count", "attention.kv_lora_rank"]
                .iter()
                .any(|suffix| facts.value(&facts.key(suffix)).is_some()) =>
        {
            let length = facts.u32(&length_key, Need::Required);
            (vec![true; blocks as usize], length)
        }
        Window::Listed { length } => {
            let Some(length) = read_length(facts, &length_key, length) else { return none };
            let key = facts.key(PATTERN);
            (listed(facts, &key, blocks, Need::Required), Some(length))
        }
    }
}

fn read_length(facts: &mut Facts<'_>, key: &str, length: Length) -> Option<u32> {
    match length {
        Length::Required => facts.u32(key, Need::Required),
        Length::IfThere => facts.u32(key, Need::Optional).filter(|&length| length > 0),
        Length::Default(default) => facts.u32(key, Need::Optional).or(Some(default)),
        Length::Fixed(fixed) => (facts.u32(key, Need::Optional) != Some(0)).then_some(fixed),
        Length::FixedIfThere(fixed) => facts.u32(key, Need::Optional).filter(|&length| length > 0).map(|_| fixed),
    }
}

fn listed(facts: &mut Facts<'_>, key: &str, blocks: u32, need: Need) -> Vec<bool> {
    let mut flags: Vec<bool> =
        facts.integers(key, need, MOST_BLOCKS as usize).unwrap_or_default().into_iter().map(|flag| flag != 0).collect();
    flags.resize(blocks as usize, false);
    flags
}

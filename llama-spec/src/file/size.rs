//! How much memory a model takes while it runs, as far as the header tells.

use super::description::{Description, LayerKind};
use crate::options::KvType;

impl KvType {
    /// Values in a block, and the bytes of it.
    const fn block(self) -> (u64, u64) {
        match self {
            Self::F32 => (1, 4),
            Self::F16 | Self::Bf16 => (1, 2),
            Self::Q8_0 => (32, 34),
            Self::Q5_1 => (32, 24),
            Self::Q5_0 => (32, 22),
            Self::Q4_1 => (32, 20),
            Self::Q4_0 | Self::Iq4Nl => (32, 18),
        }
    }

    /// The bytes of a row of `values`, whole blocks of them.
    pub(crate) const fn row_bytes(self, values: u64) -> u64 {
        let (block, bytes) = self.block();
        values.div_ceil(block).saturating_mul(bytes)
    }

    /// Values in a block: the length of a head must be a multiple of it.
    pub const fn block_length(self) -> u32 {
        self.block().0 as u32
    }
}

impl Description {
    /// Whether llama.cpp loads it as a model, as far as the header tells.
    pub fn loads(&self) -> bool {
        self.defects.is_empty() && self.kind.is_model()
    }

    /// Bytes that one more token takes in the KV cache with these types, over all layers that keep every token.
    /// Layers with a sliding window or a recurrent state are not counted, nor those of MTP heads.
    pub fn kv_bytes_per_token(&self, keys: KvType, values: KvType) -> u64 {
        self.cache_bytes(keys, values, |kind| matches!(kind, LayerKind::Attention | LayerKind::AttentionAndState))
    }

    /// Bytes that one more token takes in layers with a sliding window, until the window is full.
    pub fn window_bytes_per_token(&self, keys: KvType, values: KvType) -> u64 {
        self.cache_bytes(keys, values, |kind| kind == LayerKind::SlidingWindow)
    }

    /// Bytes that the states of all recurrent layers take for one sequence, without snapshots.
    pub fn state_bytes(&self) -> u64 {
        let stateful = |kind: &&LayerKind| matches!(kind, LayerKind::Recurrent | LayerKind::AttentionAndState);
        let layers = self.layer_kinds.iter().filter(stateful).count() as u64;
        self.state_elements.saturating_mul(layers).saturating_mul(4)
    }

    /// The memory of a context for `tokens` tokens of one sequence: keys, values and states, in bytes.
    pub fn context_bytes(&self, tokens: u32, keys: KvType, values: KvType) -> u64 {
        let in_window = u64::from(self.sliding_window.unwrap_or(u32::MAX).min(tokens));
        let all = self.kv_bytes_per_token(keys, values).saturating_mul(tokens.into());
        let window = self.window_bytes_per_token(keys, values).saturating_mul(in_window);
        all.saturating_add(window).saturating_add(self.state_bytes())
    }

    fn cache_bytes(&self, keys: KvType, values: KvType, counts: impl Fn(LayerKind) -> bool) -> u64 {
        let mut sum = 0u64;
        for (layer, &kind) in self.layer_kinds.iter().enumerate() {
            if !counts(kind) || self.shared_layers.get(layer).copied().unwrap_or(false) {
                continue;
            }
            let windowed = kind == LayerKind::SlidingWindow;
            let (key, value) = match windowed {
                true => (self.key_length_swa, self.value_length_swa),
                false => (self.key_length, self.value_length),
            };
            let heads = u64::from(self.kv_heads.get(layer).copied().unwrap_or(0));
            let length = |length: Option<u32>| heads.saturating_mul(length.unwrap_or(0).into());
            sum = sum.saturating_add(keys.row_bytes(length(key)));
            if !self.latent_attention {
                sum = sum.saturating_add(values.row_bytes(length(value)));
            }
        }
        sum
    }
}

//! The numbers that every model has, and the checks that llama.cpp makes of them: `llama_model_base::load_hparams` in the
//! pinned `src/llama-model.cpp`.

use super::facts::{Facts, Need};
use super::layers::MOST_BLOCKS;

/// The most experts that llama.cpp has room for.
const MOST_EXPERTS: u32 = 1024;

/// What every model has.
#[derive(Debug, Default)]
pub(super) struct Hyper {
    pub(super) context: Option<u32>,
    pub(super) width: Option<u32>,
    pub(super) output_width: Option<u32>,
    pub(super) causal: bool,
    pub(super) pooling: Option<u32>,
    /// All blocks; 0 when the file does not say it, or more than there can be.
    pub(super) blocks: u32,
    pub(super) mtp_blocks: u32,
    pub(super) experts: u32,
    pub(super) experts_used: u32,
    /// One for each block.
    pub(super) heads: Vec<u32>,
    pub(super) kv_heads: Vec<u32>,
    pub(super) feed_forward: Vec<u32>,
    pub(super) key_length: u32,
    pub(super) value_length: u32,
    pub(super) key_length_swa: u32,
    pub(super) value_length_swa: u32,
    pub(super) rope_length: u32,
}

impl Hyper {
    /// Reads and checks the numbers; those behind a count of blocks that cannot be are left out.
    pub(super) fn read(facts: &mut Facts<'_>, name: &str) -> Self {
        use Need::{Optional, Required};
        let key = |facts: &Facts<'_>, suffix: &str| facts.key(suffix);
        let mut hyper = Self {
            context: facts.u32(&key(facts, "context_length"), Required),
            width: facts.u32(&key(facts, "embedding_length"), Required),
            output_width: facts.u32(&key(facts, "embedding_length_out"), Optional),
            causal: facts.bool(&key(facts, "attention.causal"), Optional).unwrap_or(true),
            pooling: facts.u32(&key(facts, "pooling_type"), Optional),
            ..Self::default()
        };
        facts.text("general.name", Optional);
        facts.u32("general.file_type", Optional);
        facts.u32(&key(facts, "classifier.pooling_type"), Optional);
        let activation = key(facts, "classifier.activation");
        if let Some(name) = facts.text(&activation, Optional)
            && !matches!(name.as_str(), "gelu" | "silu" | "tanh")
        {
            facts.aborts(activation, format!("{name:?}; gelu, silu or tanh is expected"));
        }
        if !hyper.read_blocks(facts) {
            return hyper;
        }
        facts.u32(&facts.key("vocab_size"), Need::Optional);
        check_places(facts, hyper.blocks);
        hyper.read_experts(facts, name);
        hyper.read_rope(facts);
        hyper.read_heads(facts, name);
        hyper
    }

    fn read_blocks(&mut self, facts: &mut Facts<'_>) -> bool {
        let key = facts.key("block_count");
        let Some(blocks) = facts.u32(&key, Need::Required) else { return false };
        if !(1..=MOST_BLOCKS).contains(&blocks) {
            facts.aborts(key, format!("{blocks}; 1 to {MOST_BLOCKS} blocks are possible"));
            return false;
        }
        self.blocks = blocks;
        let key = facts.key("nextn_predict_layers");
        self.mtp_blocks = facts.u32(&key, Need::Optional).unwrap_or(0);
        if self.mtp_blocks > blocks {
            facts.aborts(key, format!("{} of {blocks} blocks", self.mtp_blocks));
            self.mtp_blocks = blocks;
        }
        true
    }

    fn read_experts(&mut self, facts: &mut Facts<'_>, name: &str) {
        let (count_key, used_key) = (facts.key("expert_count"), facts.key("expert_used_count"));
        let (groups_key, group_used_key) = (facts.key("expert_group_count"), facts.key("expert_group_used_count"));
        let mut experts = facts.u32(&count_key, Need::Optional).unwrap_or(0);
        let used = facts.per_layer("expert_used_count", self.blocks, Need::Optional).unwrap_or_default();
        let mut used = used.into_iter().max().unwrap_or(0);
        let groups = facts.u32(&groups_key, Need::Optional).unwrap_or(0);
        let group_used = facts.u32(&group_used_key, Need::Optional).unwrap_or(0);
        if matches!(name, "hunyuan-dense" | "hunyuan_vl") && experts <= 1 {
            (experts, used) = (0, 0);
        }
        (self.experts, self.experts_used) = (experts, used);
        if experts > MOST_EXPERTS {
            facts.aborts(count_key, format!("{experts}; at most {MOST_EXPERTS} are possible"));
        } else if used > experts {
            facts.aborts(used_key, format!("{used} of {experts} experts"));
        } else if experts > 0 && used == 0 {
            facts.aborts(used_key, format!("none of {experts} experts"));
        } else if groups > 0 && groups >= experts {
            facts.aborts(groups_key, format!("{groups} groups of {experts} experts"));
        } else if groups > 1 && !experts.is_multiple_of(groups) {
            facts.aborts(groups_key, format!("{experts} experts do not divide into {groups} groups"));
        } else if groups > 1 && !(1..groups).contains(&group_used) {
            facts.aborts(group_used_key, format!("{group_used} of {groups} groups"));
        }
    }

    fn read_rope(&mut self, facts: &mut Facts<'_>) {
        let scaling = facts.key("rope.scaling.type");
        if let Some(name) = facts.text(&scaling, Need::Optional)
            && !matches!(name.as_str(), "none" | "linear" | "yarn" | "longrope")
        {
            facts.aborts(scaling, format!("{name:?}; none, linear, yarn or longrope is expected"));
        }
        let order = facts.key("rope.section_order");
        if let Some(name) = facts.text(&order, Need::Optional)
            && !matches!(name.as_str(), "tyxz" | "zyxt")
        {
            facts.refused(order, format!("{name:?}; tyxz or zyxt is expected"));
        }
        facts.bool(&facts.key("rope.scaling.finetuned"), Need::Optional);
        facts.u32(&facts.key("rope.scaling.original_context_length"), Need::Optional);
        for suffix in ["freq_base", "scaling.attn_factor", "scaling.alpha"] {
            facts.f32(&facts.key(&format!("rope.{suffix}")), Need::Optional);
        }
        if facts.f32(&facts.key("rope.scaling.factor"), Need::Optional).is_none() {
            facts.f32(&facts.key("rope.scale_linear"), Need::Optional);
        }
        // Norms stop the process at a negative or undefined epsilon.
        for suffix in ["layer_norm_rms_epsilon", "layer_norm_epsilon"] {
            let key = facts.key(&format!("attention.{suffix}"));
            if let Some(epsilon) = facts.f32(&key, Need::Optional)
                && (epsilon.is_nan() || epsilon < 0.0)
            {
                facts.aborts(key, format!("{epsilon}; it must not be negative"));
            }
        }
    }

    fn read_heads(&mut self, facts: &mut Facts<'_>, name: &str) {
        let blocks = self.blocks;
        let none = || vec![0; blocks as usize];
        self.feed_forward = facts.per_layer("feed_forward_length", blocks, Need::Optional).unwrap_or_else(none);
        self.heads = facts.per_layer("attention.head_count", blocks, Need::Optional).unwrap_or_else(none);
        let kv_heads = facts.per_layer("attention.head_count_kv", blocks, Need::Optional);
        self.kv_heads = kv_heads.unwrap_or_else(|| self.heads.clone());
        // Models with a state only have no heads.
        if let (Some(width), Some(heads @ 1..)) = (self.width, self.heads.first().copied()) {
            let length = |facts: &mut Facts<'_>, suffix: &str, default: u32| {
                let key = facts.key(suffix);
                facts.u32(&key, Need::Optional).unwrap_or(default)
            };
            self.key_length = length(facts, "attention.key_length", width / heads);
            self.value_length = length(facts, "attention.value_length", width / heads);
            self.rope_length = length(facts, "rope.dimension_count", self.key_length);
            let rope_must_fit = matches!(name, "llama" | "deci" | "falcon" | "llama-embed");
            if rope_must_fit && self.rope_length != self.key_length {
                let why = format!("{}; {}, the length of a key, is expected", self.rope_length, self.key_length);
                facts.refused(facts.key("rope.dimension_count"), why);
            }
        }
        let swa = |facts: &mut Facts<'_>, suffix: &str, default: u32| {
            let key = facts.key(suffix);
            facts.u32(&key, Need::Optional).unwrap_or(default)
        };
        self.key_length_swa = swa(facts, "attention.key_length_swa", self.key_length);
        self.value_length_swa = swa(facts, "attention.value_length_swa", self.value_length);
        facts.u32(&facts.key("rope.dimension_count_swa"), Need::Optional);
        let uneven =
            self.heads.iter().zip(&self.kv_heads).position(|(&heads, &kv)| kv > 0 && !heads.is_multiple_of(kv));
        if let Some(block) = uneven {
            let why = format!(
                "{} for {} heads in block {block}: the one must divide the other",
                self.kv_heads[block], self.heads[block]
            );
            facts.aborts(facts.key("attention.head_count_kv"), why);
        }
    }
}

/// Tensors of blocks that are not counted, which llama.cpp leaves over and then refuses the file, and data that begins where
/// its buffers cannot.
fn check_places(facts: &mut Facts<'_>, blocks: u32) {
    const BUFFER_ALIGNMENT: u64 = 32;
    let block = |name: &str| name.strip_prefix("blk.")?.split('.').next()?.parse::<u32>().ok();
    if let Some(over) = facts.tensors().find(|tensor| block(tensor.name).is_some_and(|block| block >= blocks)) {
        facts.refused(over.name, format!("of a block behind the last of {blocks}"));
    }
    let start = facts.tensors().map(|tensor| tensor.offset).min().unwrap_or(0);
    if !start.is_multiple_of(BUFFER_ALIGNMENT) {
        let why = format!("the data begins at byte {start}, which is no multiple of {BUFFER_ALIGNMENT}");
        facts.aborts("general.alignment", why);
    }
}

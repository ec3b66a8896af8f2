//! The table: one row for each architecture of the pinned llama.cpp.
//!
//! A row without more stands for a model that generates text with an attention memory and nothing to draft from. What is
//! said beyond that was read from `src/llama-arch.cpp` (recurrent, hybrid, snapshots, undivided, unmixed), from
//! `llama_model::create_memory` and `llama_model_rope_type` in `src/llama-model.cpp` (memory, positions) and from
//! `src/models/` (hidden state, layers, heads, widths).

use super::MtpGraph::{Chained, SharedMemory, Single, Skipped};
use super::MultiAxis::{Always, WithSections};
use super::OutputWidth::{Embedding, HyperConnections, One};
use super::Role::{Diffusion, Draft, Encoder, EncoderDecoder, Projector, Unsupported};
use super::{Architecture, MemoryKind, MtpGraph, MultiAxis, OutputWidth, Role};

/// Tensors of heads with a mixture of experts.
const GATED: &[&str] = &["ffn_gate_inp"];
/// Tensors of heads with a norm of their own at the end.
const NORMED: &[&str] = &["nextn.shared_head_norm"];
const GATED_NORMED: &[&str] = &["ffn_gate_inp", "nextn.shared_head_norm"];
/// Tensors of heads with latent attention and a mixture of experts.
const LATENT: &[&str] = &[
    "attn_q_a",
    "attn_q_a_norm",
    "attn_q_b",
    "attn_kv_a_mqa",
    "attn_kv_a_norm",
    "attn_k_b",
    "ffn_norm",
    "ffn_gate_inp",
    "ffn_down_exps",
    "ffn_gate_shexp",
    "ffn_down_shexp",
    "ffn_up_shexp",
];

pub(super) const ROWS: &[Architecture] = &[
    row("clip").role(Projector),
    row("llama").layers(),
    row("llama4"),
    row("deci"),
    row("falcon"),
    row("grok").undivided(),
    row("gpt2"),
    row("gptj").role(Unsupported),
    row("gptneox"),
    row("mpt").undivided(),
    row("baichuan"),
    row("starcoder"),
    row("refact"),
    row("bert").role(Encoder).no_memory(),
    row("modern-bert").role(Encoder).no_memory(),
    row("nomic-bert").role(Encoder).no_memory(),
    row("nomic-bert-moe").role(Encoder).no_memory(),
    row("neo-bert").role(Encoder).no_memory(),
    row("jina-bert-v2").role(Encoder).no_memory(),
    row("jina-bert-v3").role(Encoder).no_memory(),
    row("eurobert").role(Encoder).no_memory(),
    row("bloom"),
    row("stablelm"),
    row("qwen"),
    row("qwen2"),
    row("qwen2moe"),
    row("qwen2vl").multi_axis(Always),
    row("sensenova_u1").layers().multi_axis(Always),
    row("qwen3").layers(),
    row("flint").layers().undivided(),
    row("qwen3moe").layers(),
    row("qwen3next").hybrid().mtp(Single).head(GATED).hidden().layers(),
    row("qwen3vl").multi_axis(Always),
    row("qwen3vlmoe").multi_axis(Always),
    row("qwen35").hybrid().snapshots().mtp(Single).hidden().layers().multi_axis(Always),
    row("qwen35moe").hybrid().snapshots().mtp(Single).head(GATED).hidden().layers().multi_axis(Always),
    row("clef").role(Encoder).no_memory().width(One).multi_axis(Always),
    row("vllm-decision2").role(Encoder).width(One),
    row("qwen4exp")
        .hybrid()
        .snapshots()
        .mtp(Single)
        .head(&["nextn.hc_head_norm"])
        .hidden()
        .layers()
        .width(HyperConnections)
        .multi_axis(Always),
    row("phi2"),
    row("phi3"),
    row("phimoe"),
    row("plamo"),
    row("plamo2").hybrid().undivided(),
    row("plamo3"),
    row("codeshell"),
    row("orion"),
    row("internlm2"),
    row("minicpm").layers(),
    row("minicpm3").undivided(),
    row("gemma"),
    row("gemma2"),
    row("gemma3"),
    row("gemma3n").undivided(),
    row("gemma4").hidden().layers(),
    row("gemma4-assistant").role(Draft).mtp(SharedMemory).hidden().unmixed(),
    row("gemma-embedding").role(Encoder).no_memory(),
    row("gemma-embedding2").role(Encoder).no_memory(),
    row("starcoder2"),
    row("mamba").recurrent().undivided(),
    row("mamba2").recurrent().undivided(),
    row("maple"),
    row("jamba").hybrid().undivided(),
    row("falcon-h1").hybrid().undivided(),
    row("xverse"),
    row("command-r"),
    row("cohere2"),
    row("cohere2moe").mtp(Single).head(GATED).hidden(),
    row("dbrx"),
    row("olmo"),
    row("olmo2").undivided(),
    row("olmoe").undivided(),
    row("muse-glimmer").layers(),
    row("muse-spark").layers(),
    row("openelm"),
    row("arctic"),
    row("deepseek"),
    row("deepseek2").mtp(Single).head(LATENT).hidden().undivided(),
    row("deepseek2-ocr").hidden(),
    row("deepseek32").mtp(Single).head(GATED).hidden().undivided(),
    row("deepseek4").hybrid().snapshots().mtp(Single).hidden().layers().last_layer().width(HyperConnections).unmixed(),
    row("deepseek41").hybrid().snapshots().layers().width(Embedding).unmixed(),
    row("chatglm"),
    row("glm4").mtp(Skipped).multi_axis(WithSections),
    row("glm4moe").mtp(Single).head(GATED).hidden().multi_axis(WithSections),
    row("glm-dsa").mtp(Single).head(GATED).hidden().undivided(),
    row("bitnet").undivided(),
    row("t5").role(EncoderDecoder).undivided(),
    row("t5encoder").role(Encoder),
    row("jais"),
    row("jais2"),
    row("nemotron"),
    row("nemotron_h").hybrid().snapshots().mtp(Skipped).hidden().layers().last_layer().undivided(),
    row("nemotron_h_moe")
        .hybrid()
        .snapshots()
        .mtp(Single)
        .head(GATED_NORMED)
        .hidden()
        .layers()
        .last_layer()
        .undivided(),
    row("exaone"),
    row("exaone4").mtp(Skipped),
    row("exaone-moe").mtp(Skipped),
    row("rwkv6").recurrent(),
    row("rwkv6qwen2").recurrent(),
    row("rwkv7").recurrent(),
    row("arwkv7").recurrent(),
    row("granite").layers(),
    row("granitemoe").layers(),
    row("granitehybrid").hybrid().layers().undivided(),
    row("graniteswitch").layers().unmixed(),
    row("granite_swa").layers(),
    row("chameleon"),
    row("wavtokenizer-dec").role(Encoder).no_memory(),
    row("plm"),
    row("bailingmoe"),
    row("bailingmoe2").mtp(Skipped),
    row("bailingmoe3")
        .hybrid()
        .snapshots()
        .mtp(Single)
        .head(NORMED)
        .hidden()
        .layers()
        .undivided()
        .multi_axis(WithSections),
    row("dots1"),
    row("dots3note").mtp(Skipped).undivided(),
    row("arcee"),
    row("afmoe"),
    row("laguna").undivided(),
    row("ernie4_5"),
    row("ernie4_5-moe"),
    row("hunyuan-moe"),
    row("hunyuan-dense").layers(),
    row("hunyuan_vl").layers().multi_axis(WithSections),
    row("hy_v3").mtp(Chained).hidden(),
    row("hy_v4").undivided(),
    row("smollm3"),
    row("gpt-oss").hidden().layers(),
    row("lfm2").hybrid().snapshots().layers(),
    row("lfm2moe").hybrid().snapshots().layers(),
    row("lfm3").hybrid().snapshots(),
    row("dream").role(Diffusion).no_memory(),
    row("smallthinker"),
    row("llada").role(Diffusion).no_memory(),
    row("llada-moe").role(Diffusion).no_memory(),
    row("seed_oss"),
    row("grovemoe"),
    row("apertus"),
    row("minimax-01").hybrid().layers().undivided(),
    row("hrm_text"),
    row("limite").undivided().unmixed(),
    row("minimax-m2").layers().undivided(),
    row("minimax-m3").undivided(),
    row("cogvlm").unmixed(),
    row("rnd1").role(Diffusion).no_memory(),
    row("pangu-embedded"),
    row("mistral3"),
    row("eagle3").role(Draft).hidden().unmixed(),
    row("dflash").role(Draft).hidden().unmixed().multi_axis(WithSections),
    row("mistral4").hidden().undivided(),
    row("mistral-large4").layers().last_layer().undivided(),
    row("paddleocr").multi_axis(Always),
    row("mimo2").mtp(Chained).head(&["attn_qkv", "ffn_gate", "ffn_down", "ffn_up"]).hidden().layers().last_layer(),
    row("step35").mtp(Chained).hidden(),
    row("spark2_5"),
    row("llama-embed").role(Encoder).layers(),
    row("maincoder"),
    row("maion-coder").layers(),
    row("kimi-linear").hybrid().undivided(),
    row("kimi-k3").hybrid().snapshots().undivided(),
    row("glm5-next").hybrid().snapshots().mtp(Single).hidden().undivided(),
    row("talkie"),
    row("mellum").mtp(Single).head(NORMED).hidden().undivided(),
    row("nanbeige").layers(),
    row("qwen3tts").undivided().multi_axis(Always),
    row("pockettts"),
    row("k2-horizon").layers(),
    row("beam"),
    row("kolibri1"),
];

const fn row(name: &'static str) -> Architecture {
    Architecture {
        name,
        role: Role::Generative,
        mtp: MtpGraph::None,
        more_head_tensors: &[],
        publishes_hidden: false,
        publishes_layers: false,
        taps_last_layer: false,
        memory: MemoryKind::Attention,
        snapshots: false,
        tensor_split: true,
        mixed_batches: true,
        multi_axis: MultiAxis::Never,
        output_width: OutputWidth::FromKey,
    }
}

impl Architecture {
    const fn role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    const fn mtp(mut self, mtp: MtpGraph) -> Self {
        self.mtp = mtp;
        self
    }

    const fn head(mut self, tensors: &'static [&'static str]) -> Self {
        self.more_head_tensors = tensors;
        self
    }

    const fn hidden(mut self) -> Self {
        self.publishes_hidden = true;
        self
    }

    const fn layers(mut self) -> Self {
        self.publishes_layers = true;
        self
    }

    const fn last_layer(mut self) -> Self {
        self.taps_last_layer = true;
        self
    }

    const fn no_memory(mut self) -> Self {
        self.memory = MemoryKind::None;
        self
    }

    const fn recurrent(mut self) -> Self {
        self.memory = MemoryKind::Recurrent;
        self
    }

    const fn hybrid(mut self) -> Self {
        self.memory = MemoryKind::Hybrid;
        self
    }

    const fn snapshots(mut self) -> Self {
        self.snapshots = true;
        self
    }

    const fn undivided(mut self) -> Self {
        self.tensor_split = false;
        self
    }

    const fn unmixed(mut self) -> Self {
        self.mixed_batches = false;
        self
    }

    const fn multi_axis(mut self, axes: MultiAxis) -> Self {
        self.multi_axis = axes;
        self
    }

    const fn width(mut self, width: OutputWidth) -> Self {
        self.output_width = width;
        self
    }
}

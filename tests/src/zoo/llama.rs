//! Models of the llama architecture: description, and the oracle of what they answer.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    cache::cached,
    chain::{Chain, DEFAULT_CYCLE, Next},
    described::Described,
    recall::{self, Recall},
    weights,
};
use crate::{
    gguf::{Gguf, TensorType, split_name},
    vocab::{Kind, Special, Vocabulary},
};

/// A chat template in the ChatML form, for [`Llama::with_chat_template`].
pub const CHAT_TEMPLATE: &str = "{% for message in messages %}\
    {{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}\
    {% endfor %}\
    {% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/// The same form with tools in JSON between tags, as Hermes and Qwen have it.
pub const TOOLS_TEMPLATE: &str = r#"
{%- if tools %}<|im_start|>system
Tools:
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}Call them as <tool_call>{"name": ..., "arguments": ...}</tool_call><|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}<|im_start|>user
<tool_response>
{{ message.content }}
</tool_response><|im_end|>
{% else %}<|im_start|>{{ message.role }}
{% if message.content %}{{ message.content }}{% endif %}
{%- for call in message.tool_calls %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"#;

/// The size of a model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Number of layers.
    pub layers: u32,
    /// Length of the embedding; a multiple of `heads`.
    pub width: u32,
    /// Number of attention heads; a multiple of `kv_heads`.
    pub heads: u32,
    /// Number of key and value heads.
    pub kv_heads: u32,
    /// Length of the feed-forward layer.
    pub feed_forward: u32,
    /// The longest context in tokens that the file says the model was trained for.
    pub context_length: u32,
}

/// The description of a model of the llama architecture whose greedy text is known.
///
/// The embedding of token `t` is the head's row of its successor `f(t)`, so the logit of `f(t)` is about
/// [`peak`](Self::with_peak) and the others are near 0. The layers add random numbers at a small scale
/// ([`noise`](Self::with_noise)): logits depend on the whole context, as those of a real model do, but the largest
/// stays the largest. `f` runs through a cycle of 80 printable characters; all other tokens lead into it.
///
/// Equal descriptions give equal files, byte for byte.
#[derive(Clone, Debug, PartialEq)]
pub struct Llama {
    label: String,
    seed: u64,
    shape: Shape,
    weights: TensorType,
    vocabulary: Vocabulary,
    chain: Chain,
    recall: Option<Recall>,
    peak: f32,
    noise: f32,
    chat_template: Option<String>,
}

impl Llama {
    /// A target: 3 layers of width 128 in F32, 2 MB. The seed changes the weights and not the text.
    pub fn target(seed: u64) -> Self {
        let shape = Shape { layers: 3, width: 128, heads: 4, kv_heads: 2, feed_forward: 256, context_length: 4096 };
        Self {
            label: "target".to_owned(),
            seed,
            shape,
            weights: TensorType::F32,
            vocabulary: Vocabulary::new(Kind::ByteLevel),
            chain: Chain::new(DEFAULT_CYCLE),
            recall: None,
            peak: 16.0,
            noise: 0.25,
            chat_template: None,
        }
    }

    /// A draft for this target: 1 layer of half the width with the target's vocabulary and type of weights, whose text
    /// agrees with the target's on the share `acceptance` of the tokens of the cycle, rounded to a whole number of them
    /// (the default cycle has 80).
    ///
    /// That share is the acceptance rate: the probability that a drafted token is accepted, given that those before it
    /// were. Over one whole cycle it is exact. In speculative decoding with drafts of 1 to 16 tokens, tested tokens
    /// (the accepted ones, and the first wrong one of each draft) are accepted at that rate within 0.05; tokens after
    /// the first wrong one are never accepted, and lower the ratio of accepted to drafted tokens.
    /// [`speculate`](Self::speculate) gives the numbers to expect, exactly.
    ///
    /// Where the target [recalls](Self::with_recall), so does the draft; tokens are then only about equally frequent, and
    /// the rate is about the share. A draft of a draft counts from the target.
    pub fn draft(&self, acceptance: f64) -> Self {
        let (width, head_width) = (self.shape.width / 2, self.head_width());
        assert!(width >= head_width, "a target with one head is too small for a draft of half its width");
        let shape = Shape {
            layers: 1,
            width,
            heads: width / head_width,
            kv_heads: (width / head_width / 2).max(1),
            feed_forward: self.shape.feed_forward / 2,
            context_length: self.shape.context_length,
        };
        Self {
            label: format!("draft-{acceptance}"),
            seed: self.seed.wrapping_add(0x1_0000),
            shape,
            chain: self.chain.draft(acceptance),
            chat_template: None,
            ..self.clone()
        }
    }

    /// The same model with a vocabulary that does not fit the original's: equal in size and type, but the ids of the
    /// bytes run in the opposite order. Its text is the same, in other tokens.
    pub fn other_vocabulary(&self) -> Self {
        self.clone().labelled("other-vocabulary").with_tokenizer(Kind::ReversedByteLevel)
    }

    /// The same model with a vocabulary of another type (SentencePiece), in which all ids differ.
    pub fn other_tokenizer(&self) -> Self {
        self.clone().labelled("other-tokenizer").with_tokenizer(Kind::SentencePiece)
    }

    /// Sets the size.
    pub fn with_shape(mut self, shape: Shape) -> Self {
        self.shape = shape;
        match self.recall.take() {
            Some(recall) => self.with_recall_of(recall.lag()),
            None => self,
        }
    }

    /// Sets the type of the matrices. Norms are always F32.
    pub fn with_weights(mut self, weights: TensorType) -> Self {
        self.weights = weights;
        self
    }

    /// Sets the vocabulary.
    pub fn with_vocabulary(mut self, vocabulary: Vocabulary) -> Self {
        self.vocabulary = vocabulary;
        self
    }

    /// Sets the bytes of the cycle: distinct, 4 or more. With the bytes of `"aé€😀"`, tokens end in the middle of
    /// characters. This forgets where generation ends and what a draft's share is, so it goes first.
    pub fn with_cycle(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.chain = Chain::new(bytes.as_ref());
        self
    }

    /// Ends generation after `byte` of the cycle: its successor is [`Special::MessageEnd`].
    pub fn ending_after(mut self, byte: u8) -> Self {
        self.chain = self.chain.ending_after(byte);
        self
    }

    /// Makes the text depend on an earlier token: every token has two successors, and attention to the token 28
    /// positions before it chooses between them. The text repeats only after thousands of tokens, n-gram look-ups are
    /// often wrong, and wrong content in the cache changes the text. [`next`](Self::next) stays exact with every type of
    /// weights, and with caches of 8 bits or more: 4-bit keys blur the attention.
    pub fn with_recall(self) -> Self {
        self.with_recall_of(28)
    }

    /// [`with_recall`](Self::with_recall) with another lag in tokens. Panics where attention cannot tell it from its
    /// neighbours; most up to 28 are good.
    pub fn with_recall_of(mut self, lag: usize) -> Self {
        self.recall = Some(Recall::new(lag, self.head_width(), self.shape.context_length));
        self
    }

    /// Sets the logit of the successor. At the default of 16 sampling at temperature 1 is all but greedy; at 4 it is
    /// spread over many tokens.
    pub fn with_peak(mut self, peak: f32) -> Self {
        self.peak = peak;
        self
    }

    /// Sets the standard deviation of what all layers together add to an embedding whose entries are 1 and -1.
    /// Default: 0.25. From about 1 on the text is no longer that of the oracle.
    pub fn with_noise(mut self, noise: f32) -> Self {
        self.noise = noise;
        self
    }

    /// Adds a chat template, such as [`CHAT_TEMPLATE`].
    pub fn with_chat_template(mut self, template: &str) -> Self {
        self.chat_template = Some(template.to_owned());
        self
    }

    /// Sets the label, which begins the names of cached files.
    pub fn labelled(mut self, label: &str) -> Self {
        self.label = label.to_owned();
        self
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The size.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The bytes of the cycle in order.
    pub fn cycle(&self) -> &[u8] {
        self.chain.cycle()
    }

    /// The exact share of the cycle on which this draft agrees with its target; 1 for a target.
    pub fn acceptance(&self) -> f64 {
        self.chain.acceptance()
    }

    /// The token that greedy decoding gives after `context`, which must hold a token. Without recall the last token
    /// alone decides.
    pub fn next(&self, context: &[u32]) -> u32 {
        let last = *context.last().expect("a model needs a token to continue from");
        let (plus, minus) = self.possible_next(last);
        let Some(recall) = &self.recall else { return plus };
        let read = self.vocabulary.byte(context[recall.place(context)]);
        if recall::sign(read) > 0 { plus } else { minus }
    }

    /// The fixed successor of `token` in a model without recall.
    pub fn successor(&self, token: u32) -> u32 {
        self.token(self.chain.next(self.vocabulary.byte(token)))
    }

    /// The `n` tokens with which greedy decoding continues `prompt`, which must hold a token (special tokens included,
    /// as the model gets them). Shorter where generation ends; the token that ends it is the last one.
    pub fn continuation(&self, prompt: &[u32], n: usize) -> Vec<u32> {
        let mut context = prompt.to_vec();
        while context.len() < prompt.len() + n {
            context.push(self.next(&context));
            if self.is_end(context[context.len() - 1]) {
                break;
            }
        }
        context.split_off(prompt.len())
    }

    /// Whether `token` ends generation.
    pub fn is_end(&self, token: u32) -> bool {
        [Special::MessageEnd, Special::Eos].iter().any(|special| self.vocabulary.special(*special) == token)
    }

    /// The file, ready to be written.
    pub fn gguf(&self) -> Gguf<'_> {
        weights::gguf(self)
    }

    /// Writes the file to `path`.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        Described::write(self, path)
    }

    /// The path of the file in the [cache](super::directory), written if it is not there.
    pub fn cached(&self) -> io::Result<PathBuf> {
        Described::cached(self)
    }

    /// The paths of the file in `parts` parts in the [cache](super::directory), the first part first.
    pub fn cached_split(&self, parts: u16) -> io::Result<Vec<PathBuf>> {
        let dir = cached(&self.label, &format!("{parts} parts of {self:?}"), "", |dir| {
            fs::create_dir_all(dir)?;
            self.gguf().write_split(dir, &self.label, parts).map(drop)
        })?;
        Ok((0..parts).map(|no| dir.join(split_name(&self.label, no, parts))).collect())
    }

    fn with_tokenizer(mut self, kind: Kind) -> Self {
        self.vocabulary = self.vocabulary.with_kind(kind);
        self
    }

    fn token(&self, next: Next) -> u32 {
        match next {
            Next::Byte(byte) => self.vocabulary.token(byte),
            Next::End => self.vocabulary.special(Special::MessageEnd),
        }
    }

    pub(super) fn head_width(&self) -> u32 {
        self.shape.width / self.shape.heads
    }
}

impl Described for Llama {
    fn label(&self) -> &str {
        &self.label
    }

    fn gguf(&self) -> Gguf<'_> {
        weights::gguf(self)
    }
}

/// What the writers of weights need to know.
impl Llama {
    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    pub(super) fn weights(&self) -> TensorType {
        self.weights
    }

    pub(super) fn recall(&self) -> Option<&Recall> {
        self.recall.as_ref()
    }

    pub(super) fn chain(&self) -> &Chain {
        &self.chain
    }

    pub(super) fn peak(&self) -> f32 {
        self.peak
    }

    pub(super) fn noise(&self) -> f32 {
        self.noise
    }

    pub(super) fn chat_template(&self) -> Option<&str> {
        self.chat_template.as_deref()
    }

    /// The tokens that may follow `token`: with recall one for each sign, else the same twice.
    pub(super) fn possible_next(&self, token: u32) -> (u32, u32) {
        let byte = self.vocabulary.byte(token);
        let [plus, minus] = match self.recall {
            None => [self.chain.next(byte); 2],
            Some(_) => recall::successors(&self.chain, byte),
        };
        (self.token(plus), self.token(minus))
    }
}

//! A model with a decoded prompt, and the arithmetic that tests compare with.

use llama_spec::sample::{Candidate, Sampler, SamplerOptions};
use llama_spec::{Batch, Context, ContextOptions, Model, Slot, Token};
use llama_spec_tests::zoo::Llama;

/// A context whose memory holds some tokens, the last of which has logits.
pub(crate) struct Prompted {
    pub(crate) model: Model,
    pub(crate) context: Context,
    /// The entry of the last batch that has them.
    pub(crate) entry: usize,
    /// Tokens in the memory.
    pub(crate) length: u32,
}

impl Prompted {
    pub(crate) fn new(llama: &Llama, prompt: &str) -> Self {
        Self::of(Model::load(llama.cached().unwrap()).unwrap(), prompt)
    }

    pub(crate) fn of(model: Model, prompt: &str) -> Self {
        let options = ContextOptions::default().length_per_slot(1024).threads(1);
        let mut prompted = Self { context: model.context(&options).unwrap(), model, entry: 0, length: 0 };
        let tokens = prompted.tokens(prompt);
        prompted.decode(&tokens);
        prompted
    }

    pub(crate) fn tokens(&self, text: &str) -> Vec<Token> {
        self.model.vocab().tokenize_plain(text).unwrap()
    }

    pub(crate) fn token(&self, byte: u8) -> Token {
        self.tokens(&char::from(byte).to_string())[0]
    }

    pub(crate) fn text(&self, tokens: &[Token]) -> String {
        self.model.vocab().text(tokens)
    }

    pub(crate) fn decode(&mut self, tokens: &[Token]) {
        let mut batch = Batch::new();
        batch.push_prompt(tokens, self.length, Slot::FIRST);
        self.context.decode(&batch).unwrap();
        (self.entry, self.length) = (batch.len() - 1, self.length + batch.len() as u32);
    }

    /// Decodes these tokens with logits after each; their entries are `0..tokens.len()`.
    pub(crate) fn decode_all(&mut self, tokens: &[Token]) -> Vec<usize> {
        let mut batch = Batch::new();
        let entries = tokens.iter().enumerate();
        let entries = entries.map(|(i, token)| batch.push(*token, self.length + i as u32, Slot::FIRST, true)).collect();
        self.context.decode(&batch).unwrap();
        entries
    }

    pub(crate) fn forget_from(&mut self, length: u32) {
        self.context.memory().remove(Slot::FIRST, length..).unwrap();
        self.length = length;
    }

    pub(crate) fn sampler(&self, options: SamplerOptions) -> Sampler {
        Sampler::new(&self.model, &options).unwrap()
    }

    pub(crate) fn logits(&self) -> Vec<f32> {
        self.context.logits(self.entry).unwrap().to_vec()
    }

    /// Samples and accepts up to `n` tokens, each decoded before the next; ends behind a token that ends generation.
    pub(crate) fn generate(&mut self, sampler: &mut Sampler, n: usize) -> Vec<Token> {
        let mut tokens = Vec::new();
        while tokens.len() < n {
            let token = sampler.sample(&self.context, self.entry).unwrap();
            sampler.accept(token).unwrap();
            tokens.push(token);
            if self.model.vocab().is_end_of_generation(token) {
                break;
            }
            self.decode(&[token]);
        }
        tokens
    }

    /// Draws from the same row again and again, without accepting.
    pub(crate) fn draw(&self, sampler: &mut Sampler, n: usize) -> Vec<Token> {
        (0..n).map(|_| sampler.sample(&self.context, self.entry).unwrap()).collect()
    }

    /// Samples once and gives the candidates that were left, ordered by token.
    pub(crate) fn candidates(&self, options: SamplerOptions) -> Vec<Candidate> {
        self.candidates_of(&mut self.sampler(options))
    }

    pub(crate) fn candidates_of(&self, sampler: &mut Sampler) -> Vec<Candidate> {
        sampler.sample(&self.context, self.entry).unwrap();
        let mut left: Vec<Candidate> = sampler.candidates(false).unwrap().iter().copied().collect();
        left.retain(|candidate| candidate.logit > f32::NEG_INFINITY);
        left.sort_by_key(|candidate| candidate.token);
        left
    }
}

/// The distribution that logits stand for.
pub(crate) fn softmax(logits: &[f32], temperature: f32) -> Vec<f64> {
    let scaled: Vec<f64> = logits.iter().map(|logit| f64::from(*logit) / f64::from(temperature)).collect();
    let max = scaled.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scaled.iter().map(|logit| (logit - max).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

/// Tokens by falling logit.
pub(crate) fn ranked(logits: &[f32]) -> Vec<Token> {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]));
    order.into_iter().map(|id| Token::new(id as i32)).collect()
}

/// Pearson's test: whether the tokens could have been drawn from `expected`. The limit is four standard deviations of the
/// statistic above its mean, and the draws are seeded, so that a test that passes keeps passing.
pub(crate) fn assert_distributed(tokens: &[Token], expected: &[f64]) {
    let mut counts = vec![0f64; expected.len()];
    tokens.iter().for_each(|token| counts[token.id() as usize] += 1.0);
    let n = tokens.len() as f64;
    // Tokens too rare to be counted on their own are counted together.
    let (mut bins, mut rest) = (Vec::new(), (0.0, 0.0));
    for (count, probability) in counts.into_iter().zip(expected) {
        let mean = probability * n;
        match mean >= 8.0 {
            true => bins.push((count, mean)),
            false => rest = (rest.0 + count, rest.1 + mean),
        }
    }
    if rest.1 > 0.0 {
        bins.push(rest);
    }
    assert!(bins.len() > 3, "only {} bins: the test would say nothing", bins.len());
    let chi_squared: f64 = bins.iter().map(|(count, mean)| (count - mean).powi(2) / mean).sum();
    let freedom = (bins.len() - 1) as f64;
    let limit = freedom + 4.0 * (2.0 * freedom).sqrt();
    assert!(chi_squared < limit, "chi squared is {chi_squared:.1} with {freedom} degrees of freedom, limit {limit:.1}");
}

/// A target whose distribution is broad: the successor has about a sixth of the probability.
pub(crate) fn broad() -> Llama {
    Llama::target(1).with_peak(4.0)
}

//! The distribution of whole texts: with any draft, and by either kind of verification, it is that of plain sampling.

use super::support::{Prompted, assert_distributed, broad, ranked};
use llama_spec::sample::{Candidate, Penalties, SamplerOptions};
use llama_spec::{Sampler, Token};
use llama_spec_tests::rng::Rng;
use std::collections::BTreeMap;

/// Tokens of each text; it may end before.
const LENGTH: usize = 3;
const TEXTS: u32 = 6000;
/// Texts less probable than this are counted together.
const RARE: f64 = 0.002;

type Text = Vec<Token>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Plain,
    Verified,
    Rejected,
}

/// "ab" is in the memory, and "c" comes before each text.
struct Bench {
    prompted: Prompted,
    options: SamplerOptions,
    seed: u32,
}

impl Bench {
    fn new(options: impl FnOnce(&Prompted) -> SamplerOptions) -> Self {
        let prompted = Prompted::new(&broad().with_noise(1.0), "ab");
        let options = options(&prompted);
        Self { prompted, options, seed: 0 }
    }

    /// A sampler that was told of the prompt and of the beginning of a text, with random numbers of its own.
    fn sampler(&mut self, text: &[Token]) -> Sampler {
        self.seed += 1;
        let mut sampler = self.prompted.sampler(self.options.clone().seed(self.seed));
        self.prompted.tokens("abc").iter().for_each(|token| sampler.accept_prompt(*token).unwrap());
        text.iter().for_each(|token| sampler.accept(*token).unwrap());
        sampler
    }

    /// Logits after each token from "c" on.
    fn decode(&mut self, text: &[Token]) -> Vec<usize> {
        self.prompted.forget_from(2);
        let entries = self.prompted.decode_all(&[&self.prompted.tokens("c"), text].concat());
        self.prompted.entry = entries[entries.len() - 1];
        entries
    }

    fn is_whole(&self, text: &[Token]) -> bool {
        let ended = text.last().is_some_and(|last| self.prompted.model.vocab().is_end_of_generation(*last));
        text.len() == LENGTH || ended
    }

    /// The probability of each text that is not rare.
    fn expected(&mut self) -> BTreeMap<Text, f64> {
        let (mut open, mut whole) = (vec![(Vec::new(), 1.0)], BTreeMap::new());
        while let Some((text, probability)) = open.pop() {
            self.decode(&text);
            let mut sampler = self.sampler(&text);
            for candidate in self.prompted.candidates_of(&mut sampler) {
                let probability = probability * f64::from(candidate.probability);
                let longer = [&text[..], &[candidate.token]].concat();
                match self.is_whole(&longer) {
                    _ if probability < RARE => {}
                    true => _ = whole.insert(longer, probability),
                    false => open.push((longer, probability)),
                }
            }
        }
        whole
    }

    /// Texts that were sampled or verified until they were whole.
    fn texts(&mut self, way: Way) -> Vec<Text> {
        let mut begun = match way {
            Way::Plain => BTreeMap::from([(Vec::new(), TEXTS)]),
            Way::Verified | Way::Rejected => self.verified(way == Way::Rejected),
        };
        let mut whole = Vec::new();
        // What a draft did not give is sampled, the same beginnings together, since they need the same row.
        while let Some((text, count)) = begun.pop_first() {
            if self.is_whole(&text) {
                whole.extend(std::iter::repeat_n(text, count as usize));
                continue;
            }
            self.decode(&text);
            for _ in 0..count {
                let mut sampler = self.sampler(&text);
                let token = sampler.sample(&self.prompted.context, self.prompted.entry).unwrap();
                *begun.entry([&text[..], &[token]].concat()).or_default() += 1;
            }
        }
        whole
    }

    /// What the verification of drafts of two tokens gave, and how often.
    fn verified(&mut self, by_rejection: bool) -> BTreeMap<Text, u32> {
        let q = self.distribution();
        let mut rng = Rng::new(1, "drafts", 0);
        let mut draw = || {
            let mut left = rng.below(1 << 24) as f32 / (1 << 24) as f32;
            let found = q.iter().find(|candidate| {
                left -= candidate.probability;
                left < 0.0
            });
            found.unwrap_or(&q[0]).token
        };
        let mut drafts: BTreeMap<Text, u32> = BTreeMap::new();
        (0..TEXTS).for_each(|_| *drafts.entry(vec![draw(), draw()]).or_default() += 1);
        let (mut begun, mut accepted) = (BTreeMap::new(), Vec::new());
        for (draft, count) in drafts {
            let entries = self.decode(&draft);
            for _ in 0..count {
                let mut sampler = self.sampler(&[]);
                let context = &self.prompted.context;
                match by_rejection {
                    false => sampler.verify(context, &entries, &draft, &mut accepted).unwrap(),
                    true => sampler.verify_rejection(context, &entries, &draft, &[&q, &q], &mut accepted).unwrap(),
                }
                *begun.entry(accepted.clone()).or_default() += 1;
            }
        }
        begun
    }

    /// What drafts are drawn from: probable tokens of the rows, an improbable one, and the end, with other probabilities than
    /// the model's.
    fn distribution(&mut self) -> Vec<Candidate> {
        let mut tokens = self.prompted.tokens("de~");
        tokens.push(self.prompted.model.vocab().eot().unwrap());
        for text in ["", "d"] {
            let text = self.prompted.tokens(text);
            self.decode(&text);
            let likely = ranked(&self.prompted.logits());
            let new: Vec<Token> = likely.into_iter().filter(|token| !tokens.contains(token)).take(2).collect();
            tokens.extend(new);
        }
        let weights = [0.25, 0.25, 0.05, 0.05, 0.1, 0.1, 0.1, 0.1];
        let candidate = |(token, probability)| Candidate { token, logit: 0.0, probability };
        tokens.into_iter().zip(weights).map(candidate).collect()
    }
}

fn assert_all_ways_agree(options: impl FnOnce(&Prompted) -> SamplerOptions) {
    let mut bench = Bench::new(options);
    let expected = bench.expected();
    // Each text gets a number; the rare ones share the last.
    let numbers: BTreeMap<&Text, i32> = expected.keys().zip(0..).collect();
    let mut probabilities: Vec<f64> = expected.values().copied().collect();
    probabilities.push((1.0 - probabilities.iter().sum::<f64>()).max(0.0));
    let last = numbers.len() as i32;
    for way in [Way::Plain, Way::Verified, Way::Rejected] {
        let found: Vec<Token> =
            bench.texts(way).iter().map(|text| Token::new(*numbers.get(text).unwrap_or(&last))).collect();
        assert_eq!(found.len(), TEXTS as usize, "{way:?}");
        assert_distributed(&found, &probabilities);
    }
}

/// A few candidates are left, so that whole texts come often enough to be counted.
fn few() -> SamplerOptions {
    SamplerOptions::default().temperature(1.0).top_p(1.0).min_p(0.0).top_k(5)
}

#[test]
fn with_a_temperature() {
    assert_all_ways_agree(|_| SamplerOptions::unfiltered().temperature(0.5));
}

#[test]
fn with_top_k() {
    assert_all_ways_agree(|_| few().temperature(1.7));
}

#[test]
fn with_top_p() {
    assert_all_ways_agree(|_| few().top_p(0.8));
}

#[test]
fn with_min_p() {
    assert_all_ways_agree(|_| few().top_k(0).min_p(0.08));
}

#[test]
fn with_penalties() {
    // The second and the third token depend on the first: what occurred comes again.
    let penalties = Penalties { repeat: 1.1, frequency: -2.0, presence: 0.5, last_n: 4 };
    assert_all_ways_agree(|_| few().penalties(penalties));
}

#[test]
fn with_a_bias() {
    assert_all_ways_agree(|prompted| {
        let (banned, likely) = (prompted.token(b'e'), prompted.token(b'~'));
        few().logit_bias(likely, 4.0).banned(vec![banned])
    });
}

#[test]
fn with_a_least_length() {
    assert_all_ways_agree(|prompted| few().logit_bias(prompted.model.vocab().eot().unwrap(), 4.5).min_tokens(1));
}

//! Drafters that know the texts, and are right and wrong as a script says.

use llama_spec::Token;
use llama_spec::spec::{Draft, Drafter};
use llama_spec_tests::rng::Rng;
use std::sync::Arc;

/// How many tokens of each draft are right; the script is repeated.
pub(crate) type Script = &'static [usize];

/// Always right, as long as its drafts may be.
pub(crate) const RIGHT: Script = &[usize::MAX];
/// Always wrong, in every token.
pub(crate) const WRONG: Script = &[0];

/// Drafts from texts that it was given.
#[derive(Clone)]
pub(crate) struct Scripted {
    /// Prompts with what follows.
    texts: Arc<Vec<Vec<Token>>>,
    script: Script,
    text: Vec<Token>,
    round: usize,
    /// It says nothing in the others.
    every: usize,
    /// What it was told: drafted and accepted.
    told: Option<(usize, usize)>,
}

impl Scripted {
    pub(crate) fn new(texts: &Arc<Vec<Vec<Token>>>, script: Script) -> Self {
        Self { texts: Arc::clone(texts), script, text: Vec::new(), round: 0, every: 1, told: None }
    }

    pub(crate) fn every_second_round(self) -> Self {
        Self { every: 2, ..self }
    }
}

impl Drafter for Scripted {
    fn begin(&mut self, text: &[Token]) {
        self.text = text.to_vec();
    }

    fn extend(&mut self, tokens: &[Token]) {
        if let Some((_, accepted)) = self.told.take() {
            assert_eq!(accepted + 1, tokens.len(), "what is accepted comes with one token of the target's");
        }
        self.text.extend_from_slice(tokens);
    }

    fn propose(&mut self, limit: usize, draft: &mut Draft) {
        assert!(limit > 0 && draft.tokens().is_empty());
        let round = self.round;
        self.round += 1;
        if !round.is_multiple_of(self.every) {
            return;
        }
        let right = self.script[round / self.every % self.script.len()];
        let rest = self.texts.iter().find_map(|text| text.strip_prefix(self.text.as_slice()));
        for (at, token) in rest.unwrap_or_default().iter().take(limit).enumerate() {
            // Another token of the alphabet, which has no control tokens.
            let wrong = Token::new(if token.id() == 70 { 71 } else { 70 });
            draft.push(if at < right { *token } else { wrong });
        }
    }

    fn outcome(&mut self, drafted: usize, accepted: usize) {
        assert!(accepted <= drafted);
        self.told = Some((drafted, accepted));
    }
}

/// What a script comes to in a text of so many tokens: rounds, drafted, accepted.
pub(crate) fn counts(script: Script, length: usize, tokens: usize) -> (u64, u64, u64) {
    let (mut at, mut rounds, mut drafted, mut accepted) = (0, 0, 0, 0);
    let mut scripted = script.iter().cycle();
    while at < tokens {
        let limit = length.min(tokens - at - 1);
        // Where nothing may be drafted, nobody is asked.
        let right = if limit == 0 { 0 } else { limit.min(*scripted.next().unwrap()) };
        (rounds, drafted, accepted) = (rounds + 1, drafted + limit, accepted + right);
        at += right + 1;
    }
    (rounds, drafted as u64, accepted as u64)
}

/// Any tokens of the vocabulary, as many as there may be.
pub(crate) struct Random {
    rng: Rng,
    tokens: usize,
}

impl Random {
    pub(crate) fn new(seed: u64, tokens: usize) -> Self {
        Self { rng: Rng::new(seed, "drafts", 0), tokens }
    }
}

impl Drafter for Random {
    fn begin(&mut self, _: &[Token]) {}

    fn extend(&mut self, _: &[Token]) {}

    fn propose(&mut self, limit: usize, draft: &mut Draft) {
        (0..limit).for_each(|_| draft.push(Token::new(self.rng.below(self.tokens) as i32)));
    }
}

/// Takes its time, and then has nothing to say.
pub(crate) struct Slow(pub(crate) std::time::Duration);

impl Drafter for Slow {
    fn begin(&mut self, _: &[Token]) {}

    fn extend(&mut self, _: &[Token]) {}

    fn propose(&mut self, _: usize, _: &mut Draft) {
        std::thread::sleep(self.0);
    }
}

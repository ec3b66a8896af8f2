//! Drafters of your own.

use crate::sample::Candidate;
use crate::token::Token;
use std::fmt;
use std::sync::Arc;

/// Guesses how a text goes on. One is made for each text, so that it may keep what it learns of it.
///
/// The target checks every guess, so a drafter can be wrong about anything without changing the text: tokens outside the
/// vocabulary and those beyond the limit are cut off, and one that panics is not asked again for this text.
///
/// ```
/// use llama_spec::spec::{Draft, Drafter};
/// use llama_spec::{Engine, ModelFile, Request, Token};
///
/// /// Guesses that the last token comes again.
/// #[derive(Default)]
/// struct Again(Option<Token>);
///
/// impl Drafter for Again {
///     fn begin(&mut self, text: &[Token]) {
///         self.0 = text.last().copied();
///     }
///     fn extend(&mut self, tokens: &[Token]) {
///         self.0 = tokens.last().copied();
///     }
///     fn propose(&mut self, limit: usize, draft: &mut Draft) {
///         (0..limit.min(2)).for_each(|_| self.0.iter().for_each(|token| draft.push(*token)));
///     }
/// }
///
/// let target = ModelFile::open(llama_spec_tests::zoo::file("target"))?;
/// let engine = Engine::builder(target).drafter(Again::default).build()?;
/// let output = engine.generate(Request::prompt("Hello").max_tokens(8))?.output()?;
/// assert_eq!(output.stats.generated_tokens, 8);
/// # Ok::<_, llama_spec::Error>(())
/// ```
pub trait Drafter: Send {
    /// A text begins, or goes on somewhere else than before: all of its tokens so far, in order.
    fn begin(&mut self, text: &[Token]);

    /// Tokens were added to the end of the text.
    fn extend(&mut self, tokens: &[Token]);

    /// Puts up to `limit` tokens that may follow into `draft`, which is empty. None is a fair answer.
    fn propose(&mut self, limit: usize, draft: &mut Draft);

    /// Of the last proposal, `drafted` tokens were checked and the first `accepted` were right. `extend` follows with what
    /// the text became, which may be more: another drafter may have gone on behind the proposal.
    fn outcome(&mut self, drafted: usize, accepted: usize) {
        let _ = (drafted, accepted);
    }
}

/// What a [`Drafter`] proposes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draft {
    pub(crate) tokens: Vec<Token>,
    /// Empty, or what each token was drawn from.
    pub(crate) distributions: Vec<Vec<Candidate>>,
}

impl Draft {
    /// Adds a token that the drafter is sure of, as far as it can be.
    pub fn push(&mut self, token: Token) {
        self.tokens.push(token);
        if !self.distributions.is_empty() {
            self.distributions.push(Vec::new());
        }
    }

    /// Adds a token that was drawn from this distribution: (token, probability) with a sum of 1. It is used by engines that
    /// [trust](crate::EngineBuilder::drawing_drafter) the drafter to have drawn it so, and ignored elsewhere.
    pub fn push_drawn(&mut self, token: Token, distribution: &[(Token, f32)]) {
        self.distributions.resize(self.tokens.len(), Vec::new());
        let candidate =
            |&(token, probability): &(Token, f32)| Candidate { token, logit: probability.ln(), probability };
        self.distributions.push(distribution.iter().map(candidate).collect());
        self.tokens.push(token);
    }

    /// The tokens so far.
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// Keeps what the engine can check: no more than `limit`, and only tokens of the vocabulary.
    pub(crate) fn cut(&mut self, limit: usize, is_token: impl Fn(Token) -> bool) {
        let known = self.tokens.iter().take(limit).take_while(|token| is_token(**token)).count();
        self.tokens.truncate(known);
        self.distributions.truncate(known);
        let drawn = self.tokens.iter().zip(&self.distributions);
        if self.distributions.len() != known
            || !drawn.clone().all(|(token, from)| is_distribution(*token, from, &is_token))
        {
            self.distributions.clear();
        }
    }

    /// Puts tokens before it that are certain.
    pub(crate) fn put_before(&mut self, tokens: &[Token]) {
        self.tokens.splice(0..0, tokens.iter().copied());
        if !self.distributions.is_empty() {
            self.distributions.splice(0..0, tokens.iter().map(|_| Vec::new()));
        }
    }

    pub(crate) fn clear(&mut self) {
        self.tokens.clear();
        self.distributions.clear();
    }
}

/// Whether a token can have been drawn from these candidates. None at all stands for certainty.
fn is_distribution(token: Token, from: &[Candidate], is_token: impl Fn(Token) -> bool) -> bool {
    let valid = |one: &Candidate| is_token(one.token) && (0.0..=1.0).contains(&one.probability);
    let sum: f64 = from.iter().map(|one| f64::from(one.probability)).sum();
    let drawn = from.iter().any(|one| one.token == token && one.probability > 0.0);
    from.is_empty() || (from.iter().all(valid) && (sum - 1.0).abs() < 1e-3 && drawn)
}

/// How drafters of one kind are made.
#[derive(Clone)]
pub(crate) struct Factory {
    make: Arc<dyn Fn() -> Box<dyn Drafter> + Send + Sync>,
    /// Its distributions are those that its tokens were drawn from.
    pub(crate) draws: bool,
}

impl Factory {
    pub(crate) fn new<D: Drafter + 'static>(make: impl Fn() -> D + Send + Sync + 'static, draws: bool) -> Self {
        Self { make: Arc::new(move || Box::new(make())), draws }
    }

    pub(crate) fn make(&self) -> Box<dyn Drafter> {
        (self.make)()
    }
}

impl fmt::Debug for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Factory").field("draws", &self.draws).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(id: i32) -> Token {
        Token::new(id)
    }

    #[test]
    fn a_draft_is_cut_at_the_first_token_that_is_none() {
        let mut draft = Draft::default();
        [3, 4, -1, 5].into_iter().for_each(|id| draft.push(token(id)));
        draft.cut(10, |token| token.id() >= 0);
        assert_eq!(draft.tokens(), [token(3), token(4)]);
        draft.cut(1, |_| true);
        assert_eq!(draft.tokens(), [token(3)]);
    }

    #[test]
    fn distributions_that_are_none_are_dropped() {
        for from in [&[(3, 0.5)][..], &[(3, 1.5), (4, -0.5)], &[(4, 1.0)], &[(3, 0.0), (4, 1.0)], &[(3, f32::NAN)]] {
            let mut draft = Draft::default();
            let from: Vec<_> = from.iter().map(|(id, probability)| (token(*id), *probability)).collect();
            draft.push_drawn(token(3), &from);
            draft.cut(10, |_| true);
            assert_eq!((draft.tokens().len(), draft.distributions.len()), (1, 0), "{from:?}");
        }
        let mut draft = Draft::default();
        draft.push(token(1));
        draft.push_drawn(token(3), &[(token(3), 0.25), (token(7), 0.75)]);
        draft.push(token(2));
        draft.cut(10, |_| true);
        assert_eq!(draft.distributions.iter().map(Vec::len).collect::<Vec<_>>(), [0, 2, 0]);
        draft.put_before(&[token(5), token(6)]);
        draft.cut(10, |_| true);
        assert_eq!(draft.tokens(), [5, 6, 1, 3, 2].map(token));
        assert_eq!(draft.distributions.iter().map(Vec::len).collect::<Vec<_>>(), [0, 0, 0, 2, 0]);
    }
}

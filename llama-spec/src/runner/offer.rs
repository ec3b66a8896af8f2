//! Drafts that could be verified in a slot.

use crate::control::{Evidence, Guess};
use crate::spec::{Draft, Source};
use crate::token::Token;

/// A draft, who made it and what speaks for it.
#[derive(Debug, Default)]
pub(super) struct Offer {
    pub(super) draft: Draft,
    /// Who drafted each token: one may have gone on where another one ended.
    pub(super) sources: Vec<Source>,
    /// The distributions of the draft are to be believed.
    pub(super) draws: bool,
    /// For each token; empty where nobody is going to choose.
    pub(super) guesses: Vec<Guess>,
}

impl Offer {
    /// Cuts it to what can be checked.
    pub(super) fn cut(&mut self, limit: usize, is_token: impl Fn(Token) -> bool) {
        self.draft.cut(limit, is_token);
        self.guesses.truncate(self.draft.tokens.len());
    }

    /// Adds a token of a drafter that goes on behind another one. Whatever the tokens before were drawn from, this one is certain.
    pub(super) fn go_on(&mut self, source: Source, token: Token, guess: Guess) {
        self.draft.push(token);
        self.sources.push(source);
        self.guesses.push(guess);
    }

    /// Says who drafted, and that the same speaks for all of the tokens.
    pub(super) fn guess(&mut self, drafter: Option<usize>, evidence: Evidence) {
        let guess = drafter.map(|drafter| Guess { drafter, evidence });
        self.guesses.clear();
        self.guesses.extend(guess.into_iter().cycle().take(self.draft.tokens.len()));
    }
}

/// The drafts of one slot in one round. Their buffers are used again.
#[derive(Debug, Default)]
pub(super) struct Offers {
    all: Vec<Offer>,
    count: usize,
}

impl Offers {
    pub(super) fn clear(&mut self) {
        self.count = 0;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Offer> {
        self.all.iter().take(self.count)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Offer> {
        self.all.iter_mut().take(self.count)
    }

    pub(super) fn get_mut(&mut self, number: usize) -> Option<&mut Offer> {
        self.all.get_mut(..self.count).and_then(|offers| offers.get_mut(number))
    }

    /// Puts the first tokens of another offer before those of the last one, whose drafter went on behind them.
    pub(super) fn put_before_last(&mut self, number: usize, length: usize) {
        let Some((last, others)) = self.all.get_mut(..self.count).and_then(<[Offer]>::split_last_mut) else { return };
        let Some(first) = others.get(number) else { return };
        last.draft.put_before(first.draft.tokens.get(..length).unwrap_or(&first.draft.tokens));
        last.sources.splice(0..0, first.sources.iter().take(length).copied());
        last.guesses.splice(0..0, first.guesses.iter().take(length).copied());
    }

    /// Makes room for a draft of somebody, lets it be filled, and keeps it unless it is empty.
    pub(super) fn add(&mut self, source: Source, fill: impl FnOnce(&mut Offer)) {
        if self.all.len() == self.count {
            self.all.push(Offer::default());
        }
        let offer = &mut self.all[self.count];
        offer.draws = false;
        offer.draft.clear();
        offer.guesses.clear();
        fill(offer);
        offer.sources.clear();
        offer.sources.resize(offer.draft.tokens.len(), source);
        self.count += usize::from(!offer.draft.tokens.is_empty());
    }
}

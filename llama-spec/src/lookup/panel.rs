//! Several earlier places of the same tokens, asked for what followed.

use super::evidence::Agreement;
use crate::token::Token;

/// So many places are asked at most.
const MEMBERS: usize = 4;

/// A place where the last tokens stood before.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Match {
    /// The number of tokens up to and with the last of them.
    pub(super) end: u32,
    /// How many are the same, at least.
    pub(super) length: u32,
}

impl Match {
    /// The same one token later, where both texts went on alike.
    pub(super) fn next(self) -> Self {
        Self { end: self.end + 1, length: self.length + 1 }
    }
}

/// Places in one text, the first of them the one that decides when nothing else does.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Panel {
    members: [Match; MEMBERS],
    count: usize,
}

/// What a panel says about one token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Opinion {
    pub(super) token: Token,
    pub(super) agreement: Agreement,
    /// The place that was heard.
    pub(super) place: Match,
}

impl Panel {
    pub(super) fn is_full(&self) -> bool {
        self.count == MEMBERS
    }

    /// Adds a place, unless it is there already or the panel is full.
    pub(super) fn add(&mut self, place: Match) {
        if self.members().iter().all(|member| member.end != place.end)
            && let Some(free) = self.members.get_mut(self.count)
        {
            *free = place;
            self.count += 1;
        }
    }

    pub(super) fn members(&self) -> &[Match] {
        self.members.get(..self.count).unwrap_or_default()
    }

    /// The first member's guess, and that of most members when it is another one.
    pub(super) fn hear(&self, next: impl Fn(u32) -> Option<Token>) -> Option<(Opinion, Option<Opinion>)> {
        let mut guesses = [None; MEMBERS];
        let mut votes = [0; MEMBERS];
        let mut voters = 0;
        for (heard, member) in self.members().iter().enumerate() {
            let Some(token) = next(member.end) else { continue };
            voters += 1;
            // Votes are counted where the token was heard first.
            let first = guesses.iter().position(|guess| *guess == Some(token)).unwrap_or(heard);
            guesses[heard] = Some(token);
            votes[first] += 1;
        }
        if votes[0] == voters
            && let Some(token) = guesses[0]
        {
            let agreement = if voters == 1 { Agreement::Alone } else { Agreement::Unanimous };
            return Some((Opinion { token, agreement, place: self.members[0] }, None));
        }
        let opinion = |heard: usize| {
            let votes = *votes.get(heard)?;
            let agreement = match () {
                () if voters == 1 => Agreement::Alone,
                () if votes == voters => Agreement::Unanimous,
                () if votes * 2 > voters => Agreement::Majority,
                () => Agreement::Disputed,
            };
            Some(Opinion { token: (*guesses.get(heard)?)?, agreement, place: *self.members.get(heard)? })
        };
        let first = guesses.iter().position(Option::is_some)?;
        let most = (first..self.count).fold(first, |most, other| if votes[other] > votes[most] { other } else { most });
        Some((opinion(first)?, if most == first { None } else { opinion(most) }))
    }

    /// The text went on with `token`: those that said so remain.
    pub(super) fn follow(&mut self, token: Token, next: impl Fn(u32) -> Option<Token>) {
        let mut remaining = 0;
        for member in 0..self.count {
            let place = self.members[member];
            if next(place.end) == Some(token) {
                self.members[remaining] = place.next();
                remaining += 1;
            }
        }
        self.count = remaining;
    }
}

//! What was decided about the round that is going on, and what its batches take.

use super::acceptance::{Bias, bias};
use super::chain::{DrafterIndex, Guess};
use super::pool::Division;

/// What was decided about the round that is going on.
#[derive(Debug, Default)]
pub(super) struct Round {
    pub(super) mode: Mode,
    /// How many tokens a second is worth.
    pub(super) price: f64,
    /// Rows of the batch at most.
    pub(super) rows: usize,
    /// The drafter that runs, and what a step of it costs for each text that it drafts for.
    pub(super) drafter: Option<DrafterIndex>,
    pub(super) step: f64,
    /// Of each text.
    pub(super) texts: Vec<Text>,
    /// What was paid already for looking at batches that are not well known, in seconds.
    pub(super) paid: f64,
    /// How many tokens more the costly drafter may well bring than it seems.
    pub(super) doubt: f64,
    /// Costly drafters are given the benefit of the doubt.
    pub(super) lift: bool,
    /// What the costly drafter drafted and nobody verifies.
    pub(super) left: Vec<Left>,
    /// Seconds of a batch by its rows, with what follows it.
    pub(super) seconds: Vec<f64>,
    /// The same, as low as it may be.
    pub(super) hoped: Vec<f64>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Text {
    pub(super) slot: usize,
    /// The longest draft in which a costly drafter has a part, and the length to be expected.
    pub(super) limit: usize,
    pub(super) aim: usize,
    /// So many tokens at its beginning are those of a free draft.
    pub(super) behind: usize,
    /// How probable it is that all it drafted so far is right.
    pub(super) survival: f64,
}

/// A drafted token that is not verified.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    pub(super) text: usize,
    pub(super) place: usize,
    pub(super) guess: Guess,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    /// Nothing is drafted.
    #[default]
    Plain,
    /// What pays is drafted.
    Pay,
    /// As before, but batches that are not well known may be tried.
    Look,
    /// A drafter that is not in use is tried in one text, with so many tokens.
    Try { drafter: DrafterIndex, text: usize, length: usize },
}

impl Round {
    /// Seconds of a batch with so many rows.
    pub(super) fn table(&self, rows: usize) -> f64 {
        self.read(&self.seconds, rows)
    }

    /// The same, as low as it may be.
    pub(super) fn hoped(&self, rows: usize) -> f64 {
        self.read(&self.hoped, rows)
    }

    /// Tokens of the texts that a drafter did not see.
    pub(super) fn missed(&self, biases: &[Vec<Bias>], drafter: DrafterIndex) -> usize {
        self.texts.iter().map(|text| bias(biases, text.slot, drafter).missed).sum()
    }

    pub(super) fn has_unknown(&self) -> bool {
        self.seconds.iter().zip(&self.hoped).any(|(seconds, hoped)| hoped < seconds)
    }

    fn read(&self, table: &[f64], rows: usize) -> f64 {
        table.get(rows).or(table.last()).copied().unwrap_or_default()
    }

    pub(super) fn time(&self, count: usize, division: Division) -> f64 {
        self.rows_time(count + division.drafted)
    }

    /// As low as it may be while batches are tried.
    pub(super) fn rows_time(&self, rows: usize) -> f64 {
        if self.mode == Mode::Look { self.hoped(rows) } else { self.table(rows) }
    }
}

//! What drafters say at each place of a text, and whether it is right: made up, or recorded from a real run.

use super::super::chain::Evidence;
use serde::{Deserialize, Serialize};

/// The longest draft of a trace.
pub(super) const LONGEST: usize = 16;

/// A token that a drafter proposes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Said {
    pub(super) evidence: Evidence,
    pub(super) right: bool,
}

/// For each drafter and each place of the text, the draft that it would make there, to its end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Text {
    pub(super) drafts: Vec<Vec<Vec<Said>>>,
}

impl Text {
    pub(super) fn len(&self) -> usize {
        self.drafts.first().map_or(0, Vec::len)
    }

    pub(super) fn draft(&self, drafter: usize, place: usize) -> &[Said] {
        self.drafts.get(drafter).and_then(|drafts| drafts.get(place)).map_or(&[], Vec::as_slice)
    }
}

pub(super) fn right(draft: &[Said]) -> usize {
    draft.iter().take_while(|said| said.right).count()
}

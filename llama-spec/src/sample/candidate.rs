//! The candidates a token was chosen from.

use crate::token::Token;
use llama_sys as sys;

/// A token that could be chosen, with what the sampler knows of it. Laid out as llama.cpp's own, so that lists of them cross
/// the border without being copied.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Candidate {
    /// The token.
    pub token: Token,
    /// Its logit after the stages that ran; minus infinity when it was ruled out.
    pub logit: f32,
    /// Its probability, 0 to 1.
    pub probability: f32,
}

const _: () = {
    assert!(size_of::<Candidate>() == size_of::<sys::llama_token_data>());
    assert!(align_of::<Candidate>() == align_of::<sys::llama_token_data>());
    assert!(std::mem::offset_of!(Candidate, token) == std::mem::offset_of!(sys::llama_token_data, id));
    assert!(std::mem::offset_of!(Candidate, logit) == std::mem::offset_of!(sys::llama_token_data, logit));
    assert!(std::mem::offset_of!(Candidate, probability) == std::mem::offset_of!(sys::llama_token_data, p));
};

/// What was left of a row when its token was chosen.
#[derive(Clone, Copy, Debug)]
pub struct Candidates<'s> {
    pub(crate) all: &'s [Candidate],
    pub(crate) selected: Option<usize>,
}

impl<'s> Candidates<'s> {
    /// All of them.
    pub fn as_slice(&self) -> &'s [Candidate] {
        self.all
    }

    /// One after the other.
    pub fn iter(&self) -> std::slice::Iter<'s, Candidate> {
        self.all.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none; after sampling there is always one.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The chosen one.
    pub fn selected(&self) -> Option<&'s Candidate> {
        self.all.get(self.selected?)
    }
}

impl<'s> IntoIterator for Candidates<'s> {
    type Item = &'s Candidate;
    type IntoIter = std::slice::Iter<'s, Candidate>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.iter()
    }
}

//! The successor function: a cycle through distinct bytes, into which every other token leads.

use crate::rng::Rng;

/// The default cycle: 80 printable characters, so that acceptance can be set in steps of 1/80. Brackets, quotes and
/// backslash are left out: text never looks like a special token, a template or an escape.
pub(super) const DEFAULT_CYCLE: &[u8; 80] =
    b"abcdefghijklmnopqrstuvwxyz,ABCDEFGHIJKLMNOPQRSTUVWXYZ.0123456789 !#%'()*+-/:;=?_";

/// What follows a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Byte(u8),
    /// The token that ends generation.
    End,
}

/// The successor function of a target, or of a draft that differs from it on some tokens.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chain {
    cycle: Vec<u8>,
    end_after: Option<u8>,
    /// For each place in the cycle: whether the successor differs from the target's.
    differs: Vec<bool>,
}

impl Chain {
    /// A target's function: a cycle through `bytes`, which must be distinct, at least 4.
    pub(super) fn new(bytes: &[u8]) -> Self {
        let distinct = (1..bytes.len()).all(|i| !bytes[..i].contains(&bytes[i]));
        assert!(distinct && bytes.len() >= 4, "a cycle is made of 4 or more distinct bytes, got {bytes:?}");
        Self { cycle: bytes.to_vec(), end_after: None, differs: vec![false; bytes.len()] }
    }

    /// Generation ends after `byte`, which must be part of the cycle.
    pub(super) fn ending_after(mut self, byte: u8) -> Self {
        assert!(self.cycle.contains(&byte), "byte {byte} is not part of the cycle");
        self.end_after = Some(byte);
        self
    }

    /// A draft's function, which agrees with the target's on the share `acceptance` of the cycle, rounded to a whole
    /// number of tokens, and on every token outside of the cycle.
    pub(super) fn draft(&self, acceptance: f64) -> Self {
        assert!((0.0..=1.0).contains(&acceptance), "an acceptance is between 0 and 1, got {acceptance}");
        let length = self.cycle.len();
        let agreeing = (acceptance * length as f64).round() as usize;
        Self { differs: differing_places(length, length - agreeing), ..self.clone() }
    }

    pub(super) fn cycle(&self) -> &[u8] {
        &self.cycle
    }

    pub(super) fn end_after(&self) -> Option<u8> {
        self.end_after
    }

    /// Whether the draft's successor of the byte at `place` of the cycle differs from the target's.
    pub(super) fn differs_at(&self, place: usize) -> bool {
        self.differs[place]
    }

    /// The share of the cycle on which the draft agrees.
    pub(super) fn acceptance(&self) -> f64 {
        self.differs.iter().filter(|differs| !**differs).count() as f64 / self.cycle.len() as f64
    }

    /// The place of a token in the cycle, if it is part of it.
    pub(super) fn place(&self, byte: Option<u8>) -> Option<usize> {
        byte.and_then(|byte| self.cycle.iter().position(|&other| other == byte))
    }

    /// The place in the cycle to which a token outside of it leads: the same in every vocabulary.
    pub(super) fn entry(&self, byte: Option<u8>) -> usize {
        byte.map_or(0, usize::from) % self.cycle.len()
    }

    /// The successor of a token, which `None` says is no byte.
    pub(super) fn next(&self, byte: Option<u8>) -> Next {
        let length = self.cycle.len();
        let Some(place) = self.place(byte) else {
            return Next::Byte(self.cycle[self.entry(byte)]);
        };
        if self.differs[place] {
            // Half a cycle from the right one: never the right one
            Next::Byte(self.cycle[(place + 1 + length / 2) % length])
        } else if self.end_after == byte {
            Next::End
        } else {
            Next::Byte(self.cycle[(place + 1) % length])
        }
    }
}

/// The longest draft for which the places are chosen, in tokens.
const LONGEST_DRAFT: usize = 16;

/// Chooses the places at which a draft differs.
///
/// Any choice gives the exact share over a whole cycle, but a draft model is asked only from certain places on, and
/// these follow from the choice: with every second place wrong and drafts of one token, a wrong place is never asked
/// for. So of a fixed series of random choices the one is taken whose measured acceptance is nearest to the share for
/// all draft lengths up to [`LONGEST_DRAFT`].
fn differing_places(length: usize, differing: usize) -> Vec<bool> {
    let mut places: Vec<bool> = (0..length).map(|place| place < differing).collect();
    if differing == 0 || differing == length {
        return places;
    }
    let share = 1.0 - differing as f64 / length as f64;
    let mut rng = Rng::new(0, "differing places", (length * 1000 + differing) as u64);
    let mut best = (f64::INFINITY, Vec::new());
    for _ in 0..CHOICES {
        rng.shuffle(&mut places);
        let mut error: f64 = 0.0;
        for draft_length in 1..=LONGEST_DRAFT {
            error = error.max((measured(&places, draft_length, 0) - share).abs());
            if error >= best.0 {
                break;
            }
        }
        if error < best.0 {
            best = (error, places.clone());
        }
    }
    best.1
}

const CHOICES: usize = 4000;

/// The acceptance that speculative decoding with drafts of `draft_length` tokens settles at, from place `start` on:
/// accepted tokens to tested ones (the accepted, and the first wrong one of a draft).
fn measured(differs: &[bool], draft_length: usize, start: usize) -> f64 {
    let length = differs.len();
    let round = |at: usize| (0..draft_length).take_while(|i| !differs[(at + i) % length]).count();
    // After `length` rounds the places asked for repeat; then count until the first comes back.
    let mut at = start;
    for _ in 0..length {
        at = (at + round(at) + 1) % length;
    }
    let (first, mut accepted, mut tested) = (at, 0, 0);
    loop {
        let right = round(at);
        accepted += right;
        tested += (right + 1).min(draft_length);
        at = (at + right + 1) % length;
        if at == first {
            return accepted as f64 / tested as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_cycle_is_printable_and_visited_whole() {
        assert!(DEFAULT_CYCLE.iter().all(|byte| (b' '..=b'~').contains(byte)));
        let chain = Chain::new(DEFAULT_CYCLE);
        let mut byte = b'a';
        for expected in DEFAULT_CYCLE[1..].iter().chain(b"a") {
            assert_eq!(chain.next(Some(byte)), Next::Byte(*expected));
            byte = *expected;
        }
    }

    #[test]
    fn every_other_token_leads_into_the_cycle() {
        let chain = Chain::new(DEFAULT_CYCLE).ending_after(b'?').draft(0.5);
        for byte in (0..=255).map(Some).chain([None]).filter(|byte| chain.place(*byte).is_none()) {
            let Next::Byte(next) = chain.next(byte) else { panic!("{byte:?} ends the text") };
            assert!(DEFAULT_CYCLE.contains(&next));
            assert_eq!(chain.next(byte), Chain::new(DEFAULT_CYCLE).next(byte));
        }
    }

    #[test]
    fn acceptance_is_exact_over_a_cycle() {
        let target = Chain::new(DEFAULT_CYCLE);
        for (acceptance, right) in [(0.0, 0), (0.5, 40), (0.8, 64), (0.95, 76), (1.0, 80)] {
            let draft = target.draft(acceptance);
            assert_eq!(draft.acceptance(), acceptance);
            let agreeing = DEFAULT_CYCLE.iter().filter(|byte| draft.next(Some(**byte)) == target.next(Some(**byte)));
            assert_eq!(agreeing.count(), right, "{acceptance}");
        }
    }

    #[test]
    fn every_draft_length_measures_about_the_set_acceptance() {
        let target = Chain::new(DEFAULT_CYCLE);
        for acceptance in [0.25, 0.5, 0.8, 0.95] {
            let draft = target.draft(acceptance);
            for draft_length in 1..=LONGEST_DRAFT {
                for start in 0..80 {
                    let measured = measured(&draft.differs, draft_length, start);
                    println!("{acceptance} {draft_length} {start} {measured}");
                    assert!((measured - acceptance).abs() < 0.05, "{measured} with drafts of {draft_length}");
                }
            }
        }
    }

    #[test]
    fn an_end_is_where_it_was_put() {
        let chain = Chain::new(b"wxyz").ending_after(b'y');
        assert_eq!(chain.next(Some(b'y')), Next::End);
        assert_eq!(chain.next(Some(b'x')), Next::Byte(b'y'));
        assert_eq!(chain.next(Some(b'z')), Next::Byte(b'w'));
    }

    #[test]
    #[should_panic(expected = "distinct")]
    fn a_byte_twice_is_refused() {
        Chain::new(b"abcda");
    }
}

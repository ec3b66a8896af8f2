mod after;
mod edits;
mod index;
mod replay;
mod rivals;
pub(super) mod texts;

use super::{Evidence, Lookup, Proposed};
use crate::token::Token;

pub(super) fn tokens(ids: &[i32]) -> Vec<Token> {
    ids.iter().copied().map(Token::new).collect()
}

pub(super) fn proposed(lookup: &mut Lookup, limit: usize) -> Vec<i32> {
    let mut out = Vec::new();
    lookup.propose(limit, &mut out);
    out.iter().map(|one| one.token.id()).collect()
}

fn begun(ids: &[i32]) -> Lookup {
    let mut lookup = Lookup::new(None);
    lookup.begin(&tokens(ids));
    lookup
}

#[test]
fn what_followed_before_is_proposed() {
    assert_eq!(proposed(&mut begun(&[1, 2, 3, 4, 5, 9, 2, 3]), 3), [4, 5, 9]);
}

#[test]
fn nothing_is_proposed_where_nothing_is_known() {
    assert_eq!(proposed(&mut begun(&[]), 8), [0; 0]);
    assert_eq!(proposed(&mut begun(&[1, 2, 3]), 8), [0; 0]);
}

/// A draft goes on in itself when it comes to the end of the text.
#[test]
fn a_text_that_repeats_itself_is_drafted_without_end() {
    assert_eq!(proposed(&mut begun(&[1, 2, 3, 1, 2, 3]), 8), [1, 2, 3, 1, 2, 3, 1, 2]);
    assert_eq!(proposed(&mut begun(&[7, 7]), 4), [7, 7, 7, 7]);
}

#[test]
fn a_limit_of_zero_empties_the_draft_and_nothing_else() {
    let mut lookup = begun(&[1, 2, 1]);
    let mut out = vec![];
    lookup.propose(1, &mut out);
    assert_eq!(out.len(), 1);
    lookup.propose(0, &mut out);
    assert_eq!(out, []);
}

#[test]
fn evidence_grows_along_a_draft() {
    let mut lookup = begun(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 1]);
    let mut out: Vec<Proposed> = Vec::new();
    lookup.propose(8, &mut out);
    let lengths: Vec<u8> = out.iter().map(|one| one.evidence.length).collect();
    assert_eq!(lengths, [0, 1, 1, 2, 2, 2, 2, 3]);
    assert!(out.iter().all(|one| (0.0..=1.0).contains(&one.probability)));
    assert!(out[7].probability > out[0].probability);
}

/// Each token is scored once it is known, whether it was proposed or not.
#[test]
fn guesses_are_scored_without_being_proposed() {
    let mut lookup = begun(&[1, 2, 3, 4]);
    let mut scores = Vec::new();
    lookup.extend(&tokens(&[1, 2, 3, 9, 1]), |_, right| scores.push(right));
    // Before the first 1 and after the 9 there is no guess.
    assert_eq!(scores, [true, true, false]);
}

#[test]
fn rates_follow_what_is_observed() {
    let mut lookup = begun(&[5, 6]);
    let mut out = Vec::new();
    let mut probability = |lookup: &mut Lookup| {
        lookup.propose(1, &mut out);
        out.first().map(|one| one.probability)
    };
    lookup.extend(&tokens(&[5]), |_, _| {});
    let before = probability(&mut lookup).expect("6 came after 5");
    // Never what came after the same token the time before.
    for other in 100..160 {
        lookup.extend(&tokens(&[other, 5]), |_, _| {});
    }
    assert!(probability(&mut lookup).expect("159 came after 5") < before / 2.0);
}

#[test]
fn every_evidence_has_a_number_of_its_own() {
    use super::{Agreement, Place};
    let mut seen = [false; Evidence::COUNT];
    for place in [Place::Output, Place::Prompt, Place::Store, Place::Edit] {
        for length in 0..6 {
            for agreement in [Agreement::Disputed, Agreement::Alone, Agreement::Majority, Agreement::Unanimous] {
                let evidence = Evidence { place, length, agreement };
                assert!(!std::mem::replace(&mut seen[evidence.index()], true), "{evidence:?}");
                assert!((0.0..=1.0).contains(&evidence.prior()));
            }
        }
    }
    assert!(seen.iter().all(|seen| *seen));
}

/// Less than 64 bytes for a token, also when no two runs are the same and right after a table has grown.
#[test]
fn memory_is_bounded() {
    let texts = [(0..40_000).collect(), texts::prose(&mut texts::Random::new(1), 40_000), vec![3; 40_000]];
    for text in texts.map(|text: Vec<i32>| tokens(&text)) {
        let mut lookup = Lookup::new(None);
        for part in text.chunks(100) {
            lookup.extend(part, |_, _| {});
            let length = lookup.text().len();
            assert!(length < 1000 || lookup.bytes() < 64 * length, "{} bytes for {length} tokens", lookup.bytes());
        }
    }
}

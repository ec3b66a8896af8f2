//! A copy that departs from its source for a moment.

use super::super::{Lookup, Place};
use super::{begun, proposed, tokens};

/// Tokens 0..40, then a copy of them.
fn copying(until: i32) -> Lookup {
    let mut lookup = begun(&(0..40).collect::<Vec<_>>());
    lookup.extend(&tokens(&(0..until).collect::<Vec<_>>()), |_, _| {});
    lookup
}

#[test]
fn after_a_replaced_token_the_copy_goes_on_behind_it() {
    let mut lookup = copying(10);
    lookup.extend(&tokens(&[99]), |_, _| {});
    assert_eq!(proposed(&mut lookup, 3), [11, 12, 13]);
}

#[test]
fn after_a_token_that_was_left_out_as_well() {
    let mut lookup = copying(10);
    lookup.extend(&tokens(&[11]), |_, _| {});
    assert_eq!(proposed(&mut lookup, 3), [12, 13, 14]);
}

#[test]
fn after_a_token_that_was_put_in_once_it_is_seen_to_be_one() {
    let mut lookup = copying(10);
    lookup.extend(&tokens(&[99, 10]), |_, _| {});
    assert_eq!(proposed(&mut lookup, 3), [11, 12, 13]);
}

#[test]
fn the_evidence_says_that_there_was_an_edit_until_the_text_can_be_found_again() {
    let mut lookup = copying(10);
    lookup.extend(&tokens(&[99]), |_, _| {});
    let mut out = Vec::new();
    lookup.propose(2, &mut out);
    assert!(out.iter().all(|one| one.evidence.place == Place::Edit), "{out:?}");
    lookup.extend(&tokens(&[11, 12]), |_, _| {});
    lookup.propose(2, &mut out);
    assert!(out.iter().all(|one| one.evidence.place == Place::Prompt), "{out:?}");
}

#[test]
fn a_text_that_does_not_come_back_is_given_up() {
    let mut lookup = copying(10);
    lookup.extend(&tokens(&(100..120).collect::<Vec<_>>()), |_, _| {});
    assert_eq!(proposed(&mut lookup, 3), [0; 0]);
}

/// The source ends where the edit happens.
#[test]
fn an_edit_at_the_end_of_the_source_is_no_harm() {
    let mut lookup = begun(&[1, 2, 3, 4, 5, 1, 2, 3, 4]);
    lookup.extend(&tokens(&[5, 1, 2, 3, 4, 5, 9, 8, 7]), |_, _| {});
    let _ = proposed(&mut lookup, 16);
}

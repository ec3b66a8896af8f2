//! Sequences that start, draft and end at different times: each is what it is alone.

use crate::kinds::{self, Kind};
use crate::many::{Many, Sequence, Setup, Trace};

/// Tokens of a sequence.
pub(crate) const LENGTH: usize = 40;

pub(crate) fn sequence(kind: &Kind, which: usize) -> Sequence {
    const LIMITS: [&[i32]; 4] = [&[-1], &[3, 0, 5, 1], &[2, 4], &[0, 0, -1, 0]];
    Sequence {
        slot: which,
        start: 0,
        prompt: kind.prompts[which].clone(),
        chunk: usize::MAX,
        apart: false,
        length: LENGTH - which,
        limits: LIMITS[which],
        types: 0,
        drawn: None,
        copy_of: None,
    }
}

/// Sequences that begin one after the other, their prompts in pieces: beside the others' drafts, or in batches of their own.
fn staggered(kind: &Kind) -> Vec<Sequence> {
    let start =
        |(which, start): (usize, usize)| Sequence { start, chunk: 7, apart: which % 2 == 1, ..sequence(kind, which) };
    [0, 2, 5, 7].into_iter().enumerate().map(start).collect()
}

/// The second and third sequence share a slot, and the slots do not follow each other.
fn with_gaps(kind: &Kind) -> Vec<Sequence> {
    let slot = |(which, slot)| Sequence { slot, ..sequence(kind, which) };
    [(0, 2), (1, 0), (2, 0)].map(slot).into()
}

/// Compares the sequences side by side with each of them alone, and with the text of the target.
pub(crate) fn check(kind: &Kind, setup: &Setup<'_>, sequences: &[Sequence], drafts_too: bool) {
    let together = Many::new(setup).run(sequences);
    for (sequence, trace) in sequences.iter().zip(&together) {
        let about = format!("{}, {sequence:?}, {setup:?}", kind.name);
        let expected = (kind.text)(&sequence.prompt, sequence.length);
        assert_eq!(trace.text[..sequence.length], expected, "{about}");
        if drafts_too {
            let alone = Many::new(setup).run(&[Sequence { start: 0, copy_of: None, ..sequence.clone() }]);
            assert_eq!(*trace, alone[0], "{about}");
        }
    }
    let accepted: usize = together.iter().map(Trace::accepted).sum();
    assert!(accepted > 0, "{}: {together:?}", kind.name);
}

fn check_all(kinds: Vec<Kind>, with: impl Fn(&mut Setup<'_>), sequences: impl Fn(&Kind) -> Vec<Sequence>) {
    for kind in kinds {
        let mut setup = kind.setup();
        with(&mut setup);
        check(&kind, &setup, &sequences(&kind), kind.drafts_are_its_own);
    }
}

fn all_at_once(kind: &Kind) -> Vec<Sequence> {
    (0..4).map(|which| sequence(kind, which)).collect()
}

#[test]
fn at_once() {
    check_all(kinds::models(), |_| {}, all_at_once);
}

#[test]
fn one_after_the_other() {
    check_all(kinds::models(), |_| {}, staggered);
}

#[test]
fn in_slots_with_gaps() {
    check_all(kinds::models(), |_| {}, with_gaps);
}

#[test]
fn in_one_cache() {
    check_all(kinds::without_snapshots(), |setup| setup.unified = true, staggered);
}

#[test]
fn in_small_micro_batches() {
    check_all(kinds::models(), |setup| setup.micro_batch = 24, staggered);
}

#[test]
fn by_lookup() {
    check_all(kinds::lookups(), |_| {}, staggered);
    check_all(kinds::lookups(), |_| {}, with_gaps);
}

/// Sequences that come and go in all slots, the last one first.
fn coming_and_going(kind: &Kind) -> Vec<Sequence> {
    let slots = [(3, 0, 9), (1, 1, 20), (2, 3, 30), (0, 4, 12), (3, 5, 33), (0, 9, 24), (1, 9, 14), (2, 9, 17)];
    let of = |(index, (slot, start, length))| {
        let (chunk, apart) = ([5, 60][index / 2 % 2], index % 3 == 0);
        Sequence { slot, start, length, chunk, apart, ..sequence(kind, index % 4) }
    };
    slots.into_iter().enumerate().map(of).collect()
}

/// States are taken back in micro-batches that hold a part of the sequences each.
#[test]
fn hybrids_in_tiny_micro_batches() {
    let hybrids = || kinds::models().into_iter().filter(|kind| kind.name.contains("hybrid")).collect();
    for micro_batch in [7, 13, 512] {
        check_all(hybrids(), |setup| setup.micro_batch = micro_batch, staggered);
        check_all(hybrids(), |setup| setup.micro_batch = micro_batch, coming_and_going);
    }
}

#[test]
fn slots_are_used_again() {
    check_all(kinds::models(), |_| {}, coming_and_going);
}

/// Each sequence has random numbers of its own.
#[test]
fn drawn_drafts() {
    let kinds = || {
        let draws = ["draft-simple", "dflash2", "mtp of a hybrid", "mtp chained", "assistant"];
        kinds::models().into_iter().filter(|kind| draws.contains(&kind.name)).collect()
    };
    let drawn = |kind: &Kind| {
        let seeded = |sequence: Sequence| Sequence { drawn: Some((20.0, sequence.slot as u32)), ..sequence };
        staggered(kind).into_iter().map(seeded).collect::<Vec<_>>()
    };
    check_all(kinds(), |setup| setup.probabilistic = true, drawn);
    for kind in kinds() {
        let setup = Setup { probabilistic: true, ..kind.setup() };
        let [cold, hot] = [0.0, 20.0].map(|temperature| {
            let sequences = [Sequence { drawn: Some((temperature, 7)), ..sequence(&kind, 0) }];
            Many::new(&setup).run(&sequences).remove(0)
        });
        assert_ne!(cold.drafts, hot.drafts, "{}", kind.name);
    }
}

/// Room in the contexts of all tests here, in tokens of a sequence.
const ROOM: usize = 256;

/// The first two sequences fill their slots to the last token, while the drafts of the others go on.
#[test]
fn to_the_end_of_the_context() {
    let filling = |kind: &Kind| {
        let mut sequences = staggered(kind);
        for sequence in &mut sequences[..2] {
            let known = ROOM - sequence.length + 1;
            let text = (kind.text)(&sequence.prompt, known - sequence.prompt.len());
            sequence.prompt.extend(text);
            (sequence.start, sequence.chunk) = (0, 60);
        }
        sequences
    };
    check_all(kinds::models(), |_| {}, filling);
}

/// Copies of a sequence that has just taken back what was wrong of a draft.
#[test]
fn copies_in_mid_text() {
    let copies = |kind: &Kind| {
        let first = Sequence { slot: 2, ..sequence(kind, 0) };
        let copy = |(slot, rounds)| Sequence { slot, copy_of: Some((0, rounds)), ..first.clone() };
        [first.clone(), copy((3, 1)), copy((1, 3)), copy((0, 4))].into()
    };
    check_all(kinds::models(), |_| {}, copies);
    check_all(kinds::lookups(), |_| {}, copies);
}

/// Several answers to one prompt: copies of the first sequence, which go on in their own ways.
#[test]
fn copies_of_a_prompt() {
    for (unified, models) in [(false, kinds::models()), (true, kinds::without_snapshots())] {
        let copies = |kind: &Kind| {
            let copy = |which| {
                let (prompt, copy_of) = (kind.prompts[2].clone(), (which > 0).then_some((0, 0)));
                Sequence { slot: 3 - which, prompt, copy_of, ..sequence(kind, which) }
            };
            (0..4).map(copy).collect()
        };
        check_all(models, |setup| setup.unified = unified, copies);
        check_all(kinds::lookups(), |setup| setup.unified = unified, copies);
    }
}

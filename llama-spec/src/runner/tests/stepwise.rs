//! Our own loops against those of llama.cpp, and what only ours can: ending drafts early, and pausing.

use super::support::{ASSISTANT, CHAIN, CHAINED, EAGLE3, HYBRID, Kind, MTP, RECURRENT, SIMPLE};
use crate::batch::Batch;
use crate::ffi::speculation::{DraftRequest, Drafted, Side};
use crate::runner::machine::{Machine, TakeBack};
use crate::runner::stepwise::Resumed;
use crate::runner::{Clock, Faults, Setup, slot};
use crate::sample::confidence::{Confidence, most_probable};
use crate::spec::{Method, Methods};
use crate::token::{Slot, Token};

const ALL: [Kind; 8] = [SIMPLE, MTP, CHAINED, ASSISTANT, EAGLE3, CHAIN, RECURRENT, HYBRID];
/// Those that can be paused.
const PAUSED: [Kind; 5] = [SIMPLE, MTP, CHAINED, ASSISTANT, EAGLE3];
const PROMPTS: [&str; 3] = ["The quick brown fox jumps over the lazy dog", "abc", "Another text, and a longer one"];

/// A machine and the texts in its slots, without a runner.
struct Bench {
    kind: Kind,
    machine: Machine,
    /// All tokens of each slot, the last of which is in no memory.
    texts: Vec<Vec<Token>>,
    rounds: usize,
}

impl Bench {
    fn new(kind: Kind, slots: usize, change: impl Fn(&mut Setup)) -> Self {
        let mut setup = kind.setup(slots as u32, &Faults::default(), &Clock::default());
        change(&mut setup);
        let machine = setup.build().unwrap_or_else(|error| panic!("{}: {error}", kind.name)).machine;
        Self { kind, machine, texts: vec![Vec::new(); slots], rounds: 0 }
    }

    /// The same with prompts in all slots.
    fn begun(kind: Kind, slots: usize, change: impl Fn(&mut Setup)) -> Self {
        let mut bench = Self::new(kind, slots, change);
        (0..slots).for_each(|index| bench.prefill(index, &kind.tokens(PROMPTS[index % PROMPTS.len()])));
        bench
    }

    fn prefill(&mut self, index: usize, prompt: &[Token]) {
        let before = &prompt[..prompt.len() - 1];
        for (number, piece) in before.chunks(32).enumerate() {
            let mut batch = Batch::new();
            batch.push_prompt(piece, (number * 32) as u32, slot(index));
            self.machine.decode(&batch).unwrap();
            self.machine.follow().unwrap();
        }
        self.machine.begin(slot(index), before).unwrap();
        self.texts[index] = prompt.to_vec();
    }

    fn requests(&self, indexes: &[usize]) -> Vec<DraftRequest> {
        let request = |index: &usize| DraftRequest {
            slot: slot(*index),
            position: self.texts[*index].len() as u32 - 1,
            last: *self.texts[*index].last().unwrap(),
            behind: Vec::new(),
            limit: 4,
            methods: Methods::of(self.kind.methods),
            distributions: None,
        };
        indexes.iter().map(request).collect()
    }

    fn draft(&mut self, indexes: &[usize], mut steer: impl FnMut(Slot, usize, Confidence) -> bool) -> Vec<Drafted> {
        let requests = self.requests(indexes);
        let mut drafted = vec![Drafted::default(); indexes.len()];
        self.machine.draft_steered(&requests, &mut drafted, |_| true, &mut steer).unwrap();
        drafted
    }

    /// A round in which all slots take part: those of `indexes` are drafted for, except that in every third round somebody else
    /// drafts, a token that is right and some that hardly are.
    fn round(&mut self, indexes: &[usize], steer: impl FnMut(Slot, usize, Confidence) -> bool) -> Vec<Drafted> {
        self.rounds += 1;
        let drafted = self.draft(indexes, steer);
        let mut drafts = vec![(Vec::new(), false); self.texts.len()];
        for (index, drafted) in indexes.iter().zip(&drafted) {
            drafts[*index] = (drafted.tokens.clone(), false);
        }
        if self.rounds.is_multiple_of(3) {
            for (text, draft) in self.texts.iter().zip(&mut drafts) {
                let right = self.kind.oracle(text, 1);
                *draft = ([&right[..], &text[..2]].concat(), true);
            }
        }
        self.finish(&drafts);
        drafted
    }

    /// Verifies drafts, and tells the drafters of it; those of somebody else are marked.
    fn finish(&mut self, drafts: &[(Vec<Token>, bool)]) {
        let mut batch = Batch::new();
        for (index, (draft, foreign)) in drafts.iter().enumerate() {
            let position = self.texts[index].len() as u32 - 1;
            if !draft.is_empty() {
                self.machine.prepare(slot(index), position, *foreign).unwrap();
            }
            for (offset, token) in self.texts[index].last().into_iter().chain(draft).enumerate() {
                batch.push(*token, position + offset as u32, slot(index), true);
            }
        }
        self.machine.decode(&batch).unwrap();
        self.machine.follow().unwrap();
        let mut row = 0;
        let mut kept = Vec::new();
        for (index, (draft, foreign)) in drafts.iter().enumerate() {
            let said = |row: usize| most_probable(self.machine.target().logits(row).unwrap()).unwrap().0;
            let said: Vec<Token> = (row..=row + draft.len()).map(said).collect();
            row += said.len();
            let accepted = said.iter().zip(draft).take_while(|(said, drafted)| said == drafted).count();
            if !draft.is_empty() {
                match foreign {
                    true => self.machine.accept_foreign(slot(index), accepted).unwrap(),
                    false => self.machine.accept(slot(index), accepted, accepted).unwrap(),
                }
            }
            let text = &mut self.texts[index];
            let position = text.len() - 1;
            text.extend_from_slice(&said[..=accepted]);
            kept.push((position, accepted, accepted < draft.len()));
        }
        let texts = &self.texts;
        let back = |(index, (position, accepted, _)): (usize, &(usize, usize, bool))| TakeBack {
            slot: slot(index),
            position: *position as u32,
            kept: &texts[index][*position..=position + accepted],
            in_step: true,
        };
        let backs: Vec<TakeBack<'_>> =
            kept.iter().enumerate().filter(|(_, (_, _, rejected))| *rejected).map(back).collect();
        if !backs.is_empty() {
            self.machine.take_back(&backs).unwrap();
            self.machine.take_back_draft(&backs).unwrap();
        }
        for (index, (position, accepted, _)) in kept.into_iter().enumerate() {
            self.machine.extend(slot(index), &self.texts[index][position..=position + accepted]).unwrap();
        }
    }

    fn check(&mut self) {
        for (index, text) in self.texts.iter().enumerate() {
            let prompt = self.kind.tokens(PROMPTS[index % PROMPTS.len()]);
            let count = text.len() - prompt.len();
            assert_eq!(text[prompt.len()..], self.kind.oracle(&prompt, count), "{}", self.kind.name);
            self.machine.in_step(slot(index)).unwrap_or_else(|failure| panic!("{}: {failure}", self.kind.name));
        }
    }
}

fn tokens(drafted: &[Drafted]) -> Vec<&[Token]> {
    drafted.iter().map(|one| one.tokens.as_slice()).collect()
}

fn go_on(_: Slot, _: usize, _: Confidence) -> bool {
    true
}

#[test]
fn drafts_are_those_of_llama_cpp() {
    for kind in ALL {
        for slots in [1, 3] {
            for probability_min in [0.0, 0.7] {
                let with = |theirs: bool| {
                    Bench::begun(kind, slots, move |setup| {
                        setup.llama_cpp_loops = theirs;
                        setup.config.as_mut().unwrap().draft_model.probability_min = probability_min;
                    })
                };
                let (mut ours, mut theirs) = (with(false), with(true));
                assert!(ours.machine.can_steer() && !theirs.machine.can_steer());
                let all: Vec<usize> = (0..slots).collect();
                let (mut drafted, mut by_model) = (0, 0);
                for round in 0..25 {
                    let (one, other) = (ours.round(&all, go_on), theirs.round(&all, go_on));
                    let what = format!("{}, {slots} slots, {probability_min}, round {round}", kind.name);
                    assert_eq!(tokens(&one), tokens(&other), "{what}");
                    assert_eq!(ours.texts, theirs.texts, "{what}");
                    for (one, other) in one.iter().zip(&other) {
                        assert_eq!(one.by, other.by, "{what}");
                        if one.by.is_some_and(|by| !by.is_lookup()) {
                            by_model += one.tokens.len();
                            assert_eq!(one.confidences.len(), one.tokens.len(), "{what}");
                            let fits = |one: &Confidence| (0.0..=1.0).contains(&one.probability) && one.margin >= 0.0;
                            assert!(one.confidences.iter().all(fits), "{what}: {:?}", one.confidences);
                        }
                    }
                    drafted += one.iter().map(|one| one.tokens.len()).sum::<usize>();
                }
                assert!(drafted > 0 && by_model > 0, "{}: {drafted}, {by_model}", kind.name);
                ours.check();
            }
        }
    }
}

/// What is not wanted is not computed: a step is one decode, and there are as many as the longest draft has tokens.
#[test]
fn drafts_end_where_they_are_told_to() {
    for kind in [SIMPLE, MTP, CHAINED, ASSISTANT, EAGLE3, RECURRENT, HYBRID] {
        let mut bench = Bench::begun(kind, 3, |setup| {
            // Of these, the lookup would draft instead.
            setup.config.as_mut().unwrap().methods.retain(|method| !method.is_lookup());
        });
        let longest = bench.kind.config().draft_model.max as usize;
        for round in 0..12 {
            let wanted = |slot: Slot| (1 + (slot.index() as usize + round) % 4).min(longest);
            let full: Vec<Drafted> = bench.draft(&[0, 1, 2], go_on);
            let before = bench.machine.draft_decodes();
            let mut asked = Vec::new();
            let drafted = bench.draft(&[0, 1, 2], |slot, count, confidence| {
                asked.push((slot, count, confidence));
                count < wanted(slot)
            });
            let decodes = (bench.machine.draft_decodes() - before) as usize;
            let what = format!("{}, round {round}", kind.name);
            assert_eq!(decodes, (0..3).map(|index| wanted(slot(index))).max().unwrap(), "{what}");
            for (index, (drafted, full)) in drafted.iter().zip(&full).enumerate() {
                assert_eq!(drafted.tokens, full.tokens[..wanted(slot(index))], "{what}");
                let of_slot = asked.iter().filter(|(asked, _, _)| *asked == slot(index));
                let counts: Vec<usize> = of_slot.clone().map(|(_, count, _)| *count).collect();
                assert_eq!(counts, (1..=wanted(slot(index)).min(longest - 1)).collect::<Vec<_>>(), "{what}");
                assert!(of_slot.zip(&drafted.confidences).all(|((_, _, one), other)| one == other), "{what}");
            }
            bench.round(&[0, 1, 2], |slot, count, _| count < wanted(slot));
        }
        bench.check();
    }
}

/// What a small model lacks of the text comes with the first step of its next draft.
#[test]
fn a_small_model_decodes_as_many_batches_as_it_drafts_tokens() {
    let mut bench = Bench::begun(SIMPLE, 2, |setup| {
        setup.config.as_mut().unwrap().methods.retain(|method| !method.is_lookup());
    });
    let mut rejected = 0;
    for round in 0..12 {
        let before = bench.machine.draft_decodes();
        let drafts = bench.draft(&[0, 1], |slot, count, _| count < 1 + (slot.index() as usize + round) % 4);
        let longest = drafts.iter().map(|draft| draft.tokens.len()).max().unwrap();
        let texts: Vec<usize> = bench.texts.iter().map(Vec::len).collect();
        let drafts: Vec<_> = drafts.into_iter().map(|draft| (draft.tokens, false)).collect();
        bench.finish(&drafts);
        assert_eq!(bench.machine.draft_decodes() - before, longest as u64, "round {round}");
        for index in 0..2 {
            bench.machine.in_step(slot(index)).unwrap();
            rejected += 1 + drafts[index].0.len() - (bench.texts[index].len() - texts[index]);
        }
    }
    assert!(rejected > 0, "nothing was taken back");
    // Where nothing is drafted for long, it is computed in few batches; and one slot alone may draft.
    let before = bench.machine.draft_decodes();
    (0..70).for_each(|_| bench.finish(&[(Vec::new(), false), (Vec::new(), false)]));
    assert!(bench.machine.draft_decodes() - before < 8, "{}", bench.machine.draft_decodes() - before);
    bench.round(&[1], go_on);
    bench.round(&[0, 1], go_on);
    bench.check();
}

/// A slot in a pause costs the draft nothing, and goes on as if there had been none.
#[test]
fn a_pause_changes_no_draft() {
    for kind in PAUSED {
        for slots in [1, 3] {
            let with = |_| Bench::begun(kind, slots, |_| {});
            let (mut paused, mut other) = (with(()), with(()));
            let all: Vec<usize> = (0..slots).collect();
            let last = slots - 1;
            assert!(paused.machine.can_pause());
            for (round, pauses) in
                [false, false, true, true, true, true, false, true, true, false, false, false].into_iter().enumerate()
            {
                let what = format!("{}, {slots} slots, round {round}", kind.name);
                if pauses {
                    paused.machine.pause(slot(last)).unwrap();
                    assert!(paused.draft(&[last], go_on)[0].tokens.is_empty(), "{what}: a draft in a pause");
                } else {
                    let before = paused.machine.draft_decodes();
                    assert_eq!(paused.machine.resume(slot(last)).unwrap(), Resumed::CaughtUp, "{what}");
                    let most = if kind.name == CHAINED.name { 3 } else { 2 };
                    assert!(paused.machine.draft_decodes() - before <= most, "{what}");
                }
                // The texts must be the same, so both are given the same drafts.
                let drafted = other.draft(&all, go_on);
                let mut own = paused.draft(&all, go_on);
                if pauses {
                    own[last] = drafted[last].clone();
                }
                assert_eq!(tokens(&own), tokens(&drafted), "{what}");
                let foreign = round % 3 == 2;
                let drafts: Vec<(Vec<Token>, bool)> = all
                    .iter()
                    .map(|index| match foreign {
                        true => ([&kind.oracle(&other.texts[*index], 1)[..], &other.texts[*index][..2]].concat(), true),
                        false => (drafted[*index].tokens.clone(), false),
                    })
                    .collect();
                other.finish(&drafts);
                let before = paused.machine.draft_decodes();
                let drafts: Vec<(Vec<Token>, bool)> = drafts
                    .into_iter()
                    .enumerate()
                    .map(|(index, (draft, foreign))| (draft, foreign || pauses && index == last))
                    .collect();
                paused.finish(&drafts);
                if pauses && slots == 1 {
                    assert_eq!(paused.machine.draft_decodes(), before, "{what}: it was followed");
                }
                assert_eq!(paused.texts, other.texts, "{what}");
                (0..slots).for_each(|index| paused.machine.in_step(slot(index)).unwrap());
            }
            paused.machine.resume(slot(last)).unwrap();
            paused.check();
        }
    }
}

/// A prompt that is read in a pause, and slots that are copied, saved, cut and emptied in one.
#[test]
fn whatever_is_done_with_a_paused_slot_is_right() {
    for kind in PAUSED {
        let mut bench = Bench::new(kind, 3, |_| {});
        let mut other = Bench::begun(kind, 3, |_| {});
        bench.machine.pause(slot(0)).unwrap();
        bench.prefill(0, &kind.tokens(PROMPTS[0]));
        bench.machine.copy(slot(0), slot(1)).unwrap();
        bench.texts[1] = bench.texts[0].clone();
        let drafted = bench.draft(&[0, 1], go_on);
        assert_eq!(drafted[0].tokens, other.draft(&[0], go_on)[0].tokens, "{}", kind.name);
        if kind.name != ASSISTANT.name {
            // It reads the target's memory, where the copy is carried out with the next decode.
            assert_eq!(drafted[0].tokens, drafted[1].tokens, "{}: copies go on alike", kind.name);
        }

        bench.machine.pause(slot(0)).unwrap();
        let history = bench.texts[0][..bench.texts[0].len() - 1].to_vec();
        let left = bench.machine.cut(slot(0), &history, 10).unwrap();
        assert!(left <= 10, "{}", kind.name);

        bench.machine.pause(slot(0)).unwrap();
        bench.machine.clear_slot(slot(0)).unwrap();
        bench.prefill(0, &kind.tokens(PROMPTS[0]));
        assert_eq!(bench.draft(&[0], go_on)[0].tokens, other.draft(&[0], go_on)[0].tokens, "{}", kind.name);
    }
}

#[test]
fn a_saved_slot_goes_on_as_it_would_have() {
    for kind in [SIMPLE, MTP, CHAINED, EAGLE3, HYBRID] {
        let mut bench = Bench::begun(kind, 2, |_| {});
        (0..4).for_each(|_| drop(bench.round(&[0, 1], go_on)));
        let text = bench.texts[0].clone();
        let history = &text[..text.len() - 1];
        let expected = bench.draft(&[0], go_on)[0].tokens.clone();
        if bench.machine.can_pause() {
            bench.machine.pause(slot(0)).unwrap();
        }
        let saved = bench.machine.save_slot(slot(0), history.len(), true).unwrap();
        bench.machine.clear_slot(slot(0)).unwrap();
        let (tokens, with_draft) = bench.machine.restore_slot(slot(0), &saved, history).unwrap();
        assert_eq!((tokens, with_draft), (history.len(), true), "{}", kind.name);
        assert_eq!(bench.draft(&[0], go_on)[0].tokens, expected, "{}", kind.name);
        for bytes in [vec![1], vec![9; 100], saved.drafter.iter().copied().skip(1).collect()] {
            bench.machine.clear_slot(slot(0)).unwrap();
            let hostile = crate::runner::Restore { drafter: bytes.clone(), ..saved.clone() };
            let (_, with_draft) = bench.machine.restore_slot(slot(0), &hostile, history).unwrap();
            assert_eq!(with_draft, bytes.is_empty(), "{}", kind.name);
        }
    }
}

#[test]
fn too_long_a_pause_is_told() {
    for kind in [SIMPLE, EAGLE3] {
        let long = |setup: &mut Setup| setup.context = setup.context.clone().length_per_slot(2048);
        let mut bench = Bench::new(kind, 1, long);
        bench.machine.pause(slot(0)).unwrap();
        let prompt: Vec<Token> = kind.tokens(&"The quick brown fox. ".repeat(60));
        assert!(prompt.len() > 1100);
        bench.prefill(0, &prompt);
        bench.machine.in_step(slot(0)).unwrap();
        assert_eq!(bench.machine.resume(slot(0)).unwrap(), Resumed::TooLate, "{}", kind.name);
        assert!(bench.machine.in_step(slot(0)).is_err());
        bench.machine.clear_slot(slot(0)).unwrap();
        bench.prefill(0, &prompt);
        assert!(!bench.draft(&[0], go_on)[0].tokens.is_empty(), "{}", kind.name);
    }
}

#[test]
fn calls_out_of_order_are_refused() {
    for kind in ALL {
        let mut bench = Bench::new(kind, 2, |_| {});
        let what = kind.name;
        // Before anything was decoded: nothing to follow, and whatever is drafted comes without an error or with one.
        assert!(bench.machine.follow().is_err() || bench.machine.end(Side::Draft, slot(0)).unwrap() == 0, "{what}");
        bench.texts = ["a", "b"].map(|text| kind.tokens(text)[..1].to_vec()).into();
        bench.draft(&[0, 1], go_on);
        assert!(bench.machine.accept(slot(0), 99, 99).is_err(), "{what}: more than was drafted");
        bench.machine.accept_foreign(slot(0), 99).unwrap();
        assert_eq!(bench.machine.resume(slot(1)).unwrap(), Resumed::CaughtUp, "{what}");
        assert!(bench.machine.resume(slot(7)).is_err() && bench.machine.accept_foreign(slot(7), 1).is_err(), "{what}");
        let can_pause = bench.machine.can_pause();
        assert_eq!(bench.machine.pause(slot(0)).is_ok(), can_pause, "{what}");
        assert!(bench.machine.pause(slot(7)).is_err(), "{what}");
        bench.machine.clear().unwrap();

        bench.prefill(0, &kind.tokens(PROMPTS[0]));
        let request = bench.requests(&[0])[0].clone();
        let mut refused = |request: DraftRequest| {
            let mut drafted = vec![Drafted::default()];
            let made = bench.machine.draft(&[request], &mut drafted, |_| false);
            made.is_err()
                || drafted[0].tokens.iter().all(|token| bench.machine.target().model().vocab().contains(*token))
        };
        assert!(refused(DraftRequest { slot: Slot::new(7), ..request.clone() }), "{what}");
        assert!(refused(DraftRequest { last: Token::new(-1), ..request.clone() }), "{what}");
        assert!(refused(DraftRequest { last: Token::new(i32::MAX), ..request.clone() }), "{what}");
        assert!(refused(DraftRequest { position: u32::MAX, ..request.clone() }), "{what}");
        assert!(refused(DraftRequest { position: 1, ..request.clone() }), "{what}");
        assert!(refused(DraftRequest { limit: u32::MAX, ..request.clone() }), "{what}");
        // It still works.
        bench.machine.clear().unwrap();
        bench.prefill(0, &kind.tokens(PROMPTS[0]));
        bench.prefill(1, &kind.tokens(PROMPTS[1]));
        (0..5).for_each(|_| drop(bench.round(&[0, 1], go_on)));
        bench.check();
    }
}

/// Tokens that were drawn come with what they were drawn from.
#[test]
fn drawn_tokens_have_distributions() {
    for kind in [SIMPLE, MTP, CHAINED, EAGLE3] {
        let mut bench = Bench::begun(kind, 2, |setup| {
            setup.config.as_mut().unwrap().draft_model.probabilistic = true;
        });
        let mut drawn = Vec::new();
        for seed in [7, 7, 8] {
            let mut requests = bench.requests(&[0, 1]);
            requests.iter_mut().for_each(|request| request.distributions = Some((1.5, seed)));
            let mut drafted = vec![Drafted::default(); 2];
            bench.machine.draft(&requests, &mut drafted, |_| true).unwrap();
            for one in &drafted {
                assert!(!one.tokens.is_empty(), "{}", kind.name);
                assert_eq!(one.distributions.is_empty(), kind.methods == [Method::DraftEagle3], "{}", kind.name);
                for (token, candidates) in one.tokens.iter().zip(&one.distributions) {
                    assert!(candidates.len() <= 10 && candidates.iter().any(|one| one.token == *token));
                    let sum: f32 = candidates.iter().map(|one| one.probability).sum();
                    assert!((sum - 1.0).abs() < 1e-5, "{}: {sum}", kind.name);
                }
            }
            drawn.push(drafted.iter().map(|one| one.tokens.clone()).collect::<Vec<_>>());
        }
        assert_eq!(drawn[0], drawn[1], "{}: a seed gives the same drafts", kind.name);
    }
}

/// What stands before is shown to the draft in its first step, whoever drafted it.
#[test]
fn a_draft_goes_on_behind_another_one_as_behind_its_own() {
    for kind in [SIMPLE, RECURRENT, HYBRID] {
        let mut bench = Bench::begun(kind, 2, |_| {});
        for _ in 0..6 {
            // The lookup of a chain begins at the end of the text.
            bench.kind.methods = &[Method::DraftSimple];
            let alone = bench.draft(&[0], |_, _, _| true).remove(0).tokens;
            for before in 1..alone.len() {
                let mut requests = bench.requests(&[0, 1]);
                (requests[0].behind, requests[0].limit) = (alone[..before].to_vec(), (alone.len() - before) as u32);
                let mut drafted = vec![Drafted::default(); 2];
                let (decodes, mut asked) = (bench.machine.draft_decodes(), Vec::new());
                let mut steer = |slot: Slot, count: usize, _: Confidence| {
                    asked.extend((slot == Slot::FIRST).then_some(count));
                    true
                };
                bench.machine.draft_steered(&requests, &mut drafted, |_| true, &mut steer).unwrap();
                assert_eq!(drafted[0].tokens, alone[before..], "{} behind {before}", kind.name);
                assert!(asked.into_iter().eq(before + 1..alone.len()), "{}", kind.name);
                // The other slot is drafted for in the same steps.
                let steps = bench.machine.draft_decodes() - decodes;
                assert_eq!(steps as usize, (alone.len() - before).max(drafted[1].tokens.len()), "{}", kind.name);
                (0..2).for_each(|index| bench.machine.in_step(slot(index)).unwrap());
            }
            bench.kind = kind;
            let drafts: Vec<_> =
                bench.draft(&[0, 1], |_, _, _| true).into_iter().map(|drafted| (drafted.tokens, false)).collect();
            bench.finish(&drafts);
        }
        bench.check();
    }
}

/// Its hidden states of what stands before are not there.
#[test]
fn heads_do_not_go_on_behind_another_draft() {
    for kind in [MTP, CHAINED, ASSISTANT, EAGLE3] {
        let mut bench = Bench::begun(kind, 1, |_| {});
        assert!(!bench.machine.can_go_on());
        let mut requests = bench.requests(&[0]);
        requests[0].behind = bench.texts[0][..1].to_vec();
        let mut drafted = vec![Drafted::default()];
        bench.machine.draft_steered(&requests, &mut drafted, |_| true, &mut |_, _, _| true).unwrap();
        assert!(drafted[0].tokens.is_empty(), "{}", kind.name);
        bench.machine.in_step(slot(0)).unwrap();
    }
}

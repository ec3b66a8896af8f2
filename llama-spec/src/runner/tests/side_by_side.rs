//! Texts in one round of which not all want the same drafters, and rounds that are too large for one batch.

use super::support::{Asked, CHAIN, EAGLE3, Injected, Kind, MTP, PLAIN, RECURRENT, SIMPLE, Table, When};
use crate::runner::{Call, Fault, Faults, OwnDrafter};
use crate::spec::{Draft, Drafter, Factory, Method, Methods, Source};
use crate::token::Token;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the target says, for so many tokens; then something else.
struct Half {
    text: Vec<Token>,
    kind: Kind,
}

impl Drafter for Half {
    fn begin(&mut self, prompt: &[Token]) {
        self.text = prompt.to_vec();
    }

    fn propose(&mut self, limit: usize, draft: &mut Draft) {
        let right = limit.min(2);
        self.kind.oracle(&self.text, right).into_iter().for_each(|token| draft.push(token));
        (right..limit).for_each(|_| draft.push(self.text[0]));
    }

    fn extend(&mut self, tokens: &[Token]) {
        self.text.extend_from_slice(tokens);
    }
}

/// A slot whose own drafter was asked has no note of the draft's memory by the draft model, and rejects tokens nevertheless.
#[test]
fn an_own_drafter_and_a_model_take_turns() {
    for kind in [SIMPLE, MTP, EAGLE3, RECURRENT] {
        let own = move || Half { text: Vec::new(), kind };
        // It is known when the contexts are made, since it drafts more than the model.
        let mut table = Table::with(kind, 3, &Faults::default(), |setup| setup.own.push(Factory::new(own, false)));
        for (number, text) in ["The quick brown fox", "abc", "Another text", "0123"].into_iter().enumerate() {
            let prompt = kind.tokens(text);
            let mut job = table.job(prompt.clone(), 60);
            if number % 2 == 0 {
                job.drafting.own.push(OwnDrafter::new(0, &table.runner.own()[0]));
                if number == 0 {
                    job.drafting.methods = Methods::NONE;
                }
            }
            table.submit(job);
        }
        table.run();
        for asked in &table.asked {
            assert!(asked.is_whole(), "{}: {asked:?}", kind.name);
        }
        let total = table.runner.total();
        assert_eq!(total.failures, 0, "{}: {:?}", kind.name, table.runner.speculation());
        let by = |wanted: fn(&Source) -> bool| {
            total
                .per_source()
                .filter(move |(source, _, _)| wanted(source))
                .map(|(_, drafted, accepted)| (drafted, accepted))
        };
        assert!(
            by(|source| matches!(source, Source::Own(0))).any(|(drafted, accepted)| 0 < accepted && accepted < drafted)
        );
        assert!(by(|source| matches!(source, Source::Drafted(_))).any(|(_, accepted)| accepted > 0), "{}", kind.name);
    }
}

/// One text wants lookups only, others come and go that want the model: it then follows what it had not followed before.
#[test]
fn a_lookup_keeps_its_draft_when_a_model_joins() {
    for kind in [CHAIN, RECURRENT] {
        let mut table = Table::new(kind, 2, &Faults::default());
        let begin = kind.tokens("The quick brown fox ");
        let mut long = begin.clone();
        long.extend(kind.oracle(&begin, 60));
        let mut lookup = table.job(long, 100);
        lookup.drafting.methods = Methods::of(&[Method::NgramSimple]);
        table.submit(lookup);
        let mut asked = 0;
        while table.step() {
            if table.steps.is_multiple_of(6) && asked < 4 {
                asked += 1;
                table.ask(&kind.tokens("abc"), 10);
            }
        }
        assert!(table.asked.iter().all(Asked::is_whole), "{}", kind.name);
        let total = table.runner.total();
        assert_eq!(total.failures, 0, "{}: {:?}", kind.name, table.runner.speculation());
        let drafted: Vec<Method> = total
            .per_source()
            .filter_map(|(source, _, _)| match source {
                Source::Drafted(method) => Some(method),
                _ => None,
            })
            .collect();
        assert!(drafted.contains(&Method::NgramSimple) && drafted.contains(&Method::DraftSimple), "{drafted:?}");
    }
}

/// More slots than rows: the groups of a round are decoded one after the other, and what happens to one can happen to the next.
#[test]
fn groups_of_one_round_do_not_trust_each_other() {
    for (fault, whole) in [(Fault::NoRoom, true), (Fault::Aborted, false)] {
        for kind in [PLAIN, SIMPLE, MTP] {
            for nth in [12, 13, 14, 15, 16, 17] {
                let seen = AtomicUsize::new(0);
                let faults = Faults::new(move |call| {
                    (call == Call::Decode && seen.fetch_add(1, Ordering::SeqCst) == nth).then_some(fault)
                });
                let mut table = Table::new(kind, 4, &faults);
                table.runner.set_rows(2);
                for text in ["The quick brown fox", "abc", "Another text", "0123"] {
                    table.ask(&kind.tokens(text), 30);
                }
                table.run();
                assert!(table.broken.is_none(), "{}: {:?}", kind.name, table.broken);
                assert!(table.asked.iter().all(Asked::is_right), "{}, {fault:?} at {nth}", kind.name);
                let right = table.asked.iter().filter(|asked| asked.is_whole()).count();
                assert!(if whole { right == 4 } else { right >= 2 }, "{}, {fault:?} at {nth}: {right}", kind.name);
            }
        }
    }
}

/// What is computed again after a round takes the place of the rows of that round.
#[test]
fn log_probabilities_are_those_of_the_round() {
    let mut rows: Vec<Vec<f32>> = Vec::new();
    for methods in [Methods::NONE, Methods::of(&[Method::NgramSimple, Method::DraftSimple])] {
        let mut table = Table::new(RECURRENT, 1, &Faults::default());
        let mut job = table.job(RECURRENT.tokens("The quick brown fox"), 60);
        job.answer = job.answer.with_logprobs(Some(0));
        job.drafting.methods = methods;
        table.submit(job);
        table.run();
        assert!(table.asked[0].is_whole());
        assert_eq!(table.asked[0].logprobs.len(), 60, "one for each token");
        rows.push(table.asked[0].logprobs.clone());
    }
    for (one, other) in rows[0].iter().zip(&rows[1]) {
        assert!((one - other).abs() < 1e-3, "{one} and {other}");
    }
}

/// All of a prompt is known already, and its first answer has to be computed again later: the others are answers to the prompt,
/// not to what the first one has said by then.
#[test]
fn several_answers_to_a_prompt_that_is_known() {
    for kind in [PLAIN, SIMPLE, MTP] {
        let injected = Injected::new(Call::RemoveTarget, Fault::Fails, When::EveryThird);
        for slots in [1, 3] {
            let mut table = Table::new(kind, slots, &injected.faults);
            let prompt = kind.tokens("The quick brown fox jumps");
            table.ask(&prompt, 1);
            table.run();
            table.ask_many(&prompt, 40, 3);
            table.run();
            for asked in &table.asked {
                assert!(asked.is_whole(), "{}, {slots} slots: {asked:?}", kind.name);
            }
        }
    }
}

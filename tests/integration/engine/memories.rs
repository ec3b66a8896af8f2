//! Memories that cannot be cut back, and several drafters in one text: whoever drafts, all of them stay in step.

use crate::pairs::{Loaded, Pair, context};
use crate::scripted::{Script, Scripted};
use crate::support::{Plain, assert_same, together};
use crate::table::{PROMPTS, all, few, greedy};
use llama_spec::engine::{Drafters, Output};
use llama_spec::spec::Source;
use llama_spec::{Engine, Model, Request};
use std::sync::Arc;

const TOKENS: u32 = 30;

/// Prompts with their texts.
fn texts(model: &Model, plain: &Plain) -> (Vec<Request>, Vec<Output>, Arc<Vec<Vec<llama_spec::Token>>>) {
    let requests: Vec<_> = PROMPTS.iter().map(|prompt| greedy(prompt, TOKENS)).collect();
    let expected: Vec<_> = requests.iter().map(|request| plain.run(request)).collect();
    let whole =
        |(prompt, output): (&&str, &Output)| [model.vocab().tokenize(prompt).unwrap(), output.tokens.clone()].concat();
    let texts = PROMPTS.iter().zip(&expected).map(whole).collect();
    (requests, expected, Arc::new(texts))
}

fn is_interesting(pair: &Pair) -> bool {
    pair.target.starts_with("qwen35") || pair.target == "mamba" || pair.draft == Some("mamba")
}

/// Patterns of right and wrong tokens, among them whole drafts that are right or wrong, one after the other.
const SCRIPTS: [Script; 4] = [&[3, 0, 5, 1, 16], &[0, 16], &[1, 1, 0, 2], &[7, 6, 5, 4, 3, 2, 1, 0]];

#[test]
fn memories_go_back_by_any_number_of_tokens() {
    for pair in all().filter(is_interesting) {
        let loaded = Loaded::new(pair);
        let (requests, expected, texts) = texts(&loaded.target, &loaded.reference());
        for (slots, micro_batch) in [(4, 64), (4, 5)] {
            let context = context().slots(slots).micro_batch(micro_batch);
            let mut builder = Engine::builder(&loaded.target).context(context).speculation(loaded.config(16));
            if let Some(draft) = &loaded.draft {
                builder = builder.draft(draft);
            }
            for script in SCRIPTS {
                let texts = Arc::clone(&texts);
                builder = builder.drafter(move || Scripted::new(&texts, script));
            }
            let engine = builder.build().unwrap();
            // The scripts alone, then the methods, and both in turns.
            let all: Vec<_> = (0..9).map(|at| at % requests.len()).collect();
            let with = |(number, at): (usize, &usize)| match number {
                0..4 => requests[*at].clone().drafters(Drafters::Own(number as u8)),
                4..7 => requests[*at].clone().drafters(Drafters::Methods(pair.methods.to_vec())),
                _ => requests[*at].clone(),
            };
            let outputs = together(&engine, all.iter().enumerate().map(with).collect());
            for (number, (got, at)) in outputs.iter().zip(&all).enumerate() {
                assert_same(got, &expected[*at], &(pair, slots, micro_batch, number));
            }
            assert_eq!(engine.speculation().reason, None, "{pair:?}, {slots} slots, micro-batches of {micro_batch}");
        }
    }
}

/// A drafter of the user's own that is wrong in every second round, and silent in the others.
#[test]
fn a_draft_of_somebody_elses_does_not_confuse_a_model() {
    for pair in few().filter(|pair| pair.methods.iter().any(|method| !method.is_lookup())) {
        let loaded = Loaded::new(pair);
        let (requests, expected, texts) = texts(&loaded.target, &loaded.reference());
        let build = |own: bool| {
            let builder = Engine::builder(&loaded.target).context(context().slots(4)).speculation(loaded.config(3));
            let builder = loaded.draft.iter().fold(builder, |builder, draft| builder.draft(draft));
            let texts = Arc::clone(&texts);
            let builder = if own {
                builder.drafter(move || Scripted::new(&texts, &[0, 1]).every_second_round())
            } else {
                builder
            };
            builder.build().unwrap()
        };
        let rate = |engine: &Engine| {
            let outputs = together(engine, requests.clone());
            for (got, expected) in outputs.iter().zip(&expected) {
                assert_same(got, expected, &pair);
            }
            assert_eq!(engine.speculation().reason, None, "{pair:?}");
            let total = engine.stats().total;
            let methods = total.per_source().filter(|one| matches!(one.0, Source::Drafted(_)));
            methods.fold((0, 0), |sum, one| (sum.0 + one.1, sum.1 + one.2))
        };
        let (alone, mixed) = (rate(&build(false)), rate(&build(true)));
        let share = |(drafted, accepted): (u64, u64)| accepted as f64 / drafted as f64;
        assert!(mixed.0 > 60, "{pair:?}: {mixed:?}");
        assert!(share(mixed) > share(alone) - 0.15, "{pair:?}: {alone:?} alone, {mixed:?} beside another");
    }
}

//! The text does not depend on who drafts how much.

use crate::pairs::{Loaded, PAIRS, context, greedy, run};
use llama_spec::{GenerateOptions, SamplerOptions};

/// Longer than a micro-batch of 64 tokens.
const LONG: &str = "A prompt of more than one micro-batch, so that drafters have to follow the target through several of \
                    them, and the last of which is not full.";

#[test]
fn every_draft_length_gives_the_text_of_the_target() {
    for pair in PAIRS {
        let loaded = Loaded::new(*pair);
        for (prompt, lengths) in [("The quick brown fox", &[1, 3, 8, 16][..]), (LONG, &[3]), ("a", &[3])] {
            let (expected, _) = run(&mut loaded.plain(), prompt, greedy(120));
            for length in lengths {
                let (tokens, stats) = run(&mut loaded.generator(*length), prompt, greedy(120));
                assert_eq!(tokens, expected, "{pair:?}, drafts of {length}, prompt {prompt:?}");
                assert!(stats.drafted > 0, "{pair:?}, drafts of {length}, prompt {prompt:?}: {stats:?}");
                if *length <= 3 {
                    let enough = stats.accepted * 100 >= stats.drafted * pair.accepted;
                    assert!(enough, "{pair:?}, drafts of {length}, prompt {prompt:?}: {stats:?}");
                }
            }
        }
    }
}

#[test]
fn a_seed_gives_the_same_text_with_and_without_drafts() {
    let options = || {
        let sampler = SamplerOptions::default().temperature(4.0).seed(7);
        GenerateOptions::sampled(sampler).max_tokens(80)
    };
    for pair in PAIRS {
        let loaded = Loaded::new(*pair);
        let (expected, _) = run(&mut loaded.plain(), "The quick", options());
        let (tokens, stats) = run(&mut loaded.generator(3), "The quick", options());
        assert_eq!(tokens, expected, "{pair:?}");
        // Only a draft that is the target itself, or lookup, can be right all the time.
        let rejected = stats.accepted < stats.drafted;
        assert!(rejected || pair.accepted == 99 || pair.draft.is_none(), "{pair:?}: {stats:?}");
    }
}

/// With micro-batches too short for snapshots, a hybrid target goes back to a checkpoint like a recurrent one.
#[test]
fn hybrid_targets_do_without_snapshots() {
    for pair in PAIRS.iter().filter(|pair| pair.target.starts_with("qwen35")) {
        let loaded = Loaded::new(*pair);
        let (expected, _) = run(&mut loaded.plain(), "The quick brown fox", greedy(60));
        for micro_batch in [2, 4] {
            let mut generator = loaded.with(5, context().micro_batch(micro_batch));
            let (tokens, stats) = run(&mut generator, "The quick brown fox", greedy(60));
            assert_eq!(tokens, expected, "{pair:?}, micro-batches of {micro_batch}");
            assert!(stats.drafted > 0, "{pair:?}, micro-batches of {micro_batch}");
        }
    }
}

/// Cells that fell out of the window must not be needed by what is rolled back.
#[test]
fn short_sliding_windows_do() {
    for pair in PAIRS.iter().filter(|pair| pair.target == "gemma4" || pair.target.starts_with("chained")) {
        let loaded = Loaded::new(*pair);
        let (expected, _) = run(&mut loaded.plain(), LONG, greedy(100));
        let mut generator = loaded.with(5, context().full_sliding_window(false));
        let (tokens, stats) = run(&mut generator, LONG, greedy(100));
        assert_eq!(tokens, expected, "{pair:?}");
        assert!(stats.accepted > 0, "{pair:?}: {stats:?}");
        // Where a beginning is kept, it must be whole.
        let (again, _) = run(&mut generator, LONG, greedy(100));
        assert_eq!(again, expected, "{pair:?}");
    }
}

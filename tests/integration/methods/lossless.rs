//! The text does not depend on who drafts how much.

use crate::pairs::{Loaded, PAIRS, greedy, run};

/// Longer than a micro-batch of 64 tokens.
const LONG: &str = "A prompt of more than one micro-batch, so that drafters have to follow the target through several of \
                    them, and the last of which is not full.";

#[test]
fn every_draft_length_gives_the_text_of_the_target() {
    for pair in PAIRS {
        let loaded = Loaded::new(*pair);
        for prompt in ["a", "The quick brown fox", LONG] {
            let (expected, _) = run(&mut loaded.plain(), prompt, greedy(150));
            for length in [1, 3, 8, 16] {
                let (tokens, stats) = run(&mut loaded.generator(length), prompt, greedy(150));
                assert_eq!(tokens, expected, "{pair:?}, drafts of {length}, prompt {prompt:?}");
                assert!(stats.drafted > 0, "{pair:?}, drafts of {length}, prompt {prompt:?}: {stats:?}");
                if length <= 3 {
                    let enough = stats.accepted * 100 >= stats.drafted * pair.accepted;
                    assert!(enough, "{pair:?}, drafts of {length}, prompt {prompt:?}: {stats:?}");
                }
            }
        }
    }
}

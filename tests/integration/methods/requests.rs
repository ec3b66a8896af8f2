//! Requests one after the other: what the memories keep of one must not change the next.

use crate::pairs::{Loaded, PAIRS, context, greedy, run};
use llama_spec::{GenerateOptions, StopReason};

#[test]
fn the_next_request_is_that_of_a_new_generator() {
    for pair in PAIRS {
        let loaded = Loaded::new(*pair);
        let mut generator = loaded.generator(5);
        // The same, a longer one, one that shares its beginning, its own prefix, another one, and the first again.
        for prompt in ["The quick", "The quick", "The quick brown fox", "The quick red", "The", "Another", "The quick"]
        {
            let (expected, alone) = run(&mut loaded.plain(), prompt, greedy(60));
            let (tokens, stats) = run(&mut generator, prompt, greedy(60));
            assert_eq!(tokens, expected, "{pair:?}, {prompt:?}");
            assert_eq!(stats.generated_tokens, alone.generated_tokens);
            // A draft that learns nothing from earlier texts is as good as in a new generator.
            if pair.methods.iter().all(|method| !method.is_lookup()) {
                let (_, fresh) = run(&mut loaded.generator(5), prompt, greedy(60));
                let counts = |stats: &llama_spec::spec::Stats| (stats.rounds, stats.drafted, stats.accepted);
                assert_eq!(counts(&stats), counts(&fresh), "{pair:?}, {prompt:?}, cached {}", stats.cached_tokens);
            }
        }
    }
}

#[test]
fn a_conversation_is_continued_without_computing_it_again() {
    for pair in PAIRS {
        let loaded = Loaded::new(*pair);
        let mut generator = loaded.generator(4);
        let mut prompt = generator.model().vocab().tokenize("The first request").unwrap();
        for turn in 0..4 {
            let more = generator.model().vocab().tokenize_plain(" and more");
            let mut generation = generator.generate_tokens(prompt.clone(), greedy(30)).unwrap();
            let answer: Vec<_> = generation
                .by_ref()
                .filter_map(|event| match event.unwrap() {
                    llama_spec::Event::Token { token, .. } => Some(token),
                    _ => None,
                })
                .collect();
            let cached = generation.stats().cached_tokens as usize;
            drop(generation);
            assert_eq!(generator.speculation().reason, None, "{pair:?}, turn {turn}");
            let mut plain = loaded.plain();
            let expected: Vec<_> = plain
                .generate_tokens(prompt.clone(), greedy(30))
                .unwrap()
                .filter_map(|event| match event.unwrap() {
                    llama_spec::Event::Token { token, .. } => Some(token),
                    _ => None,
                })
                .collect();
            assert_eq!(answer, expected, "{pair:?}, turn {turn}");
            assert!(turn == 0 || cached + 20 > prompt.len(), "{pair:?}, turn {turn}: {cached} of {}", prompt.len());
            prompt.extend(answer);
            prompt.extend(more.unwrap());
        }
    }
}

#[test]
fn a_cancelled_request_leaves_no_trace() {
    for pair in PAIRS {
        let loaded = Loaded::new(*pair);
        let (expected, _) = run(&mut loaded.plain(), "xyz", greedy(40));
        let mut generator = loaded.generator(6);
        for events in 0..9 {
            let long = "A long prompt to be given up somewhere, of more than one micro-batch if there is any";
            let taken = generator.generate(long, greedy(100)).unwrap().take(events).count();
            assert_eq!(taken, events);
            let (tokens, _) = run(&mut generator, "xyz", greedy(40));
            assert_eq!(tokens, expected, "{pair:?} after {events} events");
        }
    }
}

#[test]
fn the_context_is_filled_to_the_last_token() {
    for pair in PAIRS {
        let loaded = Loaded::new(*pair);
        let prompt = "x".repeat(230);
        let mut generator = loaded.with(7, context().length_per_slot(256));
        let length = generator.context_length() as usize;
        let tokens = generator.model().vocab().tokenize(&prompt).unwrap().len();
        let mut generation = generator.generate(&prompt, GenerateOptions::greedy()).unwrap();
        let (mut count, mut reason) = (0, None);
        for event in generation.by_ref() {
            match event.unwrap() {
                llama_spec::Event::Token { .. } => count += 1,
                llama_spec::Event::Finished { reason: why, .. } => reason = Some(why),
                _ => {}
            }
        }
        drop(generation);
        assert_eq!(generator.speculation().reason, None, "{pair:?}");
        assert_eq!((reason, count), (Some(StopReason::ContextFull), length - tokens + 1), "{pair:?}");
    }
}

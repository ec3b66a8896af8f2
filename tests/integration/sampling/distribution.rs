//! What is drawn, and how it depends on the seed.

use super::support::{Prompted, assert_distributed, broad, softmax};
use llama_spec::Token;
use llama_spec::sample::SamplerOptions;
use llama_spec_tests::zoo::Llama;

#[test]
fn greedy_follows_the_successor() {
    let llama = Llama::target(1);
    let mut prompted = Prompted::new(&llama, "abc");
    let mut sampler = prompted.sampler(SamplerOptions::greedy());
    let tokens: Vec<u32> = prompted.generate(&mut sampler, 200).iter().map(|token| token.id() as u32).collect();
    assert_eq!(tokens, llama.continuation(&llama.vocabulary().tokenize("abc"), 200));
    assert_eq!(sampler.seed(), None);
}

#[test]
fn greedy_takes_the_highest_logit_of_a_broad_row() {
    let prompted = Prompted::new(&broad().with_noise(1.0), "abcxyz");
    let logits = prompted.logits();
    let best = (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b])).unwrap();
    let greedy = [
        SamplerOptions::greedy(),
        SamplerOptions::default().temperature(0.0),
        SamplerOptions::default().top_k(1),
        SamplerOptions::greedy().stages(vec![]),
    ];
    for options in greedy {
        let mut sampler = prompted.sampler(options);
        assert_eq!(prompted.draw(&mut sampler, 3), [Token::new(best as i32); 3]);
        let candidates = sampler.candidates(true).unwrap();
        assert_eq!(candidates.as_slice()[0].probability, 1.0);
    }
}

#[test]
fn draws_have_the_distribution_of_the_logits() {
    let prompted = Prompted::new(&broad(), "abc");
    for temperature in [0.5, 1.0, 2.0] {
        let expected = softmax(&prompted.logits(), temperature);
        let mut sampler = prompted.sampler(SamplerOptions::unfiltered().temperature(temperature).seed(7));
        assert_distributed(&prompted.draw(&mut sampler, 20_000), &expected);
        for candidate in prompted.candidates_of(&mut sampler) {
            let expected = expected[candidate.token.id() as usize];
            assert!((f64::from(candidate.probability) - expected).abs() < 1e-5, "{candidate:?}, expected {expected}");
        }
    }
}

/// The test above must be able to fail.
#[test]
#[should_panic(expected = "chi squared")]
fn another_temperature_is_noticed() {
    let prompted = Prompted::new(&broad(), "abc");
    let mut sampler = prompted.sampler(SamplerOptions::unfiltered().temperature(1.1).seed(7));
    assert_distributed(&prompted.draw(&mut sampler, 20_000), &softmax(&prompted.logits(), 1.0));
}

#[test]
fn the_seed_decides() {
    let prompted = Prompted::new(&broad(), "abc");
    let draws = |options: SamplerOptions| prompted.draw(&mut prompted.sampler(options), 100);
    let seeded = |seed| draws(SamplerOptions::unfiltered().seed(seed));
    assert_eq!(seeded(1), seeded(1));
    assert_ne!(seeded(1), seeded(2));
    assert_eq!(prompted.sampler(SamplerOptions::unfiltered().seed(9)).seed(), Some(9));

    let (one, other) = (prompted.sampler(SamplerOptions::unfiltered()), prompted.sampler(SamplerOptions::unfiltered()));
    assert_ne!(one.seed(), other.seed());
    let again = seeded(one.seed().unwrap());
    assert_eq!(prompted.draw(&mut { one }, 100), again);
}

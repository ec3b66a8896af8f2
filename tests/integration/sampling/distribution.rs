//! What is drawn, and how it depends on the seed.

use super::support::{Prompted, assert_distributed, broad, ranked, softmax};
use llama_spec::Token;
use llama_spec::sample::{Penalties, SamplerOptions};
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
fn greedy_with_biases_takes_the_highest_of_the_sums() {
    let row = Prompted::new(&broad().with_noise(1.0), "abcxyz");
    let logits = row.logits();
    let ranks = ranked(&logits);
    // Steps of a quarter make equal sums, of which the first token is taken.
    let steps = |rank: usize| logits[ranks[rank].id() as usize] - logits[ranks[0].id() as usize];
    for (case, banned) in (0..40).flat_map(|case| [(case, 0), (case, case % 5)]) {
        let mut options = SamplerOptions::greedy().banned(ranks[..banned].to_vec());
        let mut sums: Vec<f32> = logits.clone();
        ranks[..banned].iter().for_each(|token| sums[token.id() as usize] = f32::NEG_INFINITY);
        for rank in (banned..banned + 20).step_by(case % 7 + 1) {
            let bias = -steps(rank) + [0.0, -0.25, 0.25][(case + rank) % 3];
            options = options.logit_bias(ranks[rank], bias);
            sums[ranks[rank].id() as usize] += bias;
        }
        assert_eq!(row.draw(&mut row.sampler(options), 1), [ranked(&sums)[0]], "case {case}, {banned} banned");
    }
    // What is said twice of a token counts twice.
    let [best, other] = [ranks[0], ranks[5]];
    let twice = SamplerOptions::greedy().logit_bias(other, 100.0).banned(vec![other]);
    assert_eq!(row.draw(&mut row.sampler(twice), 1), [best]);
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

/// What the stages leave is worked out here from the row alone.
#[test]
fn draws_have_the_distribution_of_what_the_stages_leave() {
    let prompted = Prompted::new(&broad().with_noise(1.0), "abc");
    let logits = prompted.logits();
    let (order, probabilities) = (ranked(&logits), softmax(&logits, 1.0));
    let probability = |token: &Token| probabilities[token.id() as usize];
    let nucleus = |share: f64| {
        let mut sum = 0.0;
        let below = |token: &&Token| {
            let before = sum;
            sum += probability(token);
            before <= share
        };
        order.iter().take_while(below).copied().collect::<Vec<_>>()
    };
    let only = |kept: &[Token], changed: &[(Token, f32)]| {
        let mut row = vec![f32::NEG_INFINITY; logits.len()];
        kept.iter().for_each(|token| row[token.id() as usize] = logits[token.id() as usize]);
        changed.iter().for_each(|(token, by)| row[token.id() as usize] += by);
        row
    };
    let near: Vec<Token> =
        order.iter().copied().filter(|token| probability(token) >= 0.06 * probability(&order[0])).collect();
    let seen = [order[0], order[3]];
    let off = || SamplerOptions::default().temperature(1.0).top_k(0).top_p(1.0).min_p(0.0).seed(3);
    let penalties = Penalties { frequency: 0.75, presence: -0.5, ..Penalties::default() };
    for (options, row) in [
        (off().top_k(12), only(&order[..12], &[])),
        (off().top_p(0.7), only(&nucleus(0.7), &[])),
        (off().min_p(0.06), only(&near, &[])),
        (off().penalties(penalties), only(&order, &[(seen[0], -1.0), (seen[1], -0.25)])),
        (
            off().logit_bias(order[5], 2.5).logit_bias(order[0], -1.5),
            only(&order, &[(order[5], 2.5), (order[0], -1.5)]),
        ),
        (off().banned(vec![order[1]]), only(&[&order[..1], &order[2..]].concat(), &[])),
    ] {
        let mut sampler = prompted.sampler(options.temperature(1.5));
        // The first occurs twice.
        [seen[0], seen[1], seen[0]].iter().for_each(|token| sampler.accept_prompt(*token).unwrap());
        assert_distributed(&prompted.draw(&mut sampler, 20_000), &softmax(&row, 1.5));
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

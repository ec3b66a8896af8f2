//! What each stage leaves of a row, compared with its definition.

use super::support::{Prompted, broad, ranked, softmax};
use llama_spec::Token;
use llama_spec::sample::{
    AdaptiveP, Candidate, Dry, DynamicTemperature, Mirostat, Penalties, SamplerOptions, Stage, Xtc,
};
use llama_spec_tests::zoo::Llama;
use std::collections::BTreeSet;

/// A row in which many tokens are probable.
fn row() -> Prompted {
    Prompted::new(&broad().with_noise(1.0), "The quick brown fox")
}

fn only(stage: Stage) -> SamplerOptions {
    SamplerOptions::unfiltered().stages(vec![stage]).seed(1)
}

fn tokens(candidates: &[Candidate]) -> BTreeSet<Token> {
    candidates.iter().map(|candidate| candidate.token).collect()
}

/// The tokens for which `keep` holds, by id.
fn kept(values: &[f64], keep: impl Fn(f64) -> bool) -> BTreeSet<Token> {
    let ids = values.iter().enumerate().filter(|(_, value)| keep(**value)).map(|(id, _)| Token::new(id as i32));
    ids.collect()
}

/// The smallest set of the first of `order` whose probabilities add up to more than `share`.
fn first_of(order: &[Token], probabilities: &[f64], share: f64) -> BTreeSet<Token> {
    let mut sum = 0.0;
    let mut set = BTreeSet::new();
    for token in order {
        set.insert(*token);
        sum += probabilities[token.id() as usize];
        if sum > share {
            break;
        }
    }
    set
}

#[test]
fn top_k_keeps_the_most_probable() {
    let row = row();
    for k in [2, 7, 40] {
        let left = row.candidates(only(Stage::TopK).top_k(k));
        assert_eq!(tokens(&left), ranked(&row.logits())[..k as usize].iter().copied().collect());
    }
    assert_eq!(row.candidates(only(Stage::TopK).top_k(0)).len(), row.logits().len());
    assert_eq!(row.candidates(only(Stage::TopK).top_k(1_000_000)).len(), row.logits().len());
}

#[test]
fn top_p_keeps_the_nucleus() {
    let row = row();
    let (logits, probabilities) = (row.logits(), softmax(&row.logits(), 1.0));
    for p in [0.1, 0.5, 0.9] {
        let left = row.candidates(only(Stage::TopP).top_p(p));
        assert_eq!(tokens(&left), first_of(&ranked(&logits), &probabilities, p.into()), "{p}");
    }
    assert_eq!(row.candidates(only(Stage::TopP).top_p(1.0)).len(), logits.len());
    assert_eq!(row.candidates(only(Stage::TopP).top_p(0.0)).len(), 1);
    assert_eq!(row.candidates(only(Stage::TopP).top_p(0.0).min_keep(5)).len(), 5);
}

#[test]
fn min_p_keeps_what_is_near_the_top() {
    let row = row();
    let probabilities = softmax(&row.logits(), 1.0);
    let best = probabilities.iter().copied().fold(0.0, f64::max);
    for p in [0.05, 0.2, 0.7] {
        let left = row.candidates(only(Stage::MinP).min_p(p));
        assert_eq!(tokens(&left), kept(&probabilities, |probability| probability >= f64::from(p) * best), "{p}");
    }
}

#[test]
fn typical_p_keeps_what_is_near_the_entropy() {
    let row = row();
    let probabilities = softmax(&row.logits(), 1.0);
    let entropy: f64 = probabilities.iter().map(|p| -p * p.ln()).sum();
    let distance = |token: &Token| (-probabilities[token.id() as usize].ln() - entropy).abs();
    let mut order = ranked(&row.logits());
    order.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
    for p in [0.2, 0.6] {
        let left = row.candidates(only(Stage::TypicalP).typical_p(p));
        assert_eq!(tokens(&left), first_of(&order, &probabilities, p.into()), "{p}");
        assert!(
            !tokens(&left).contains(&ranked(&row.logits())[0]),
            "the top token carries too little information here"
        );
    }
}

#[test]
fn top_n_sigma_cuts_below_the_highest_logit() {
    let row = row();
    let logits: Vec<f64> = row.logits().into_iter().map(f64::from).collect();
    let mean = logits.iter().sum::<f64>() / logits.len() as f64;
    let sigma = (logits.iter().map(|logit| (logit - mean).powi(2)).sum::<f64>() / logits.len() as f64).sqrt();
    let max = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for n in [0.5, 1.5, 3.0] {
        let left = row.candidates(only(Stage::TopNSigma).top_n_sigma(n));
        assert_eq!(tokens(&left), kept(&logits, |logit| logit >= max - f64::from(n) * sigma), "{n}");
    }
}

#[test]
fn xtc_removes_all_top_choices_but_one() {
    let row = row();
    let probabilities = softmax(&row.logits(), 1.0);
    let order = ranked(&row.logits());
    // Between the fourth and the fifth.
    let of = |rank: usize| probabilities[order[rank].id() as usize];
    let (top, threshold) = (4, (of(3) + of(4)) as f32 / 2.0);
    let left = row.candidates(only(Stage::Xtc).xtc(Xtc { probability: 1.0, threshold }));
    assert_eq!(tokens(&left), order[top - 1..].iter().copied().collect());

    // With a probability between, it happens about that often.
    let mut sampler = row.sampler(only(Stage::Xtc).xtc(Xtc { probability: 0.3, threshold }));
    let removed = (0..1000).filter(|_| row.candidates_of(&mut sampler).len() < probabilities.len()).count();
    assert!((240..=360).contains(&removed), "{removed} of 1000");
}

#[test]
fn temperature_divides_the_logits() {
    let row = row();
    for candidate in row.candidates(only(Stage::Temperature).temperature(2.5)) {
        let expected = row.logits()[candidate.token.id() as usize] / 2.5;
        assert!((candidate.logit - expected).abs() < 1e-4);
    }
}

#[test]
fn dynamic_temperature_follows_the_entropy() {
    let row = row();
    let probabilities = softmax(&row.logits(), 1.0);
    let entropy: f64 = probabilities.iter().map(|p| -p * p.ln()).sum();
    let share = entropy / (probabilities.len() as f64).ln();
    let dynamic = DynamicTemperature { range: 0.75, exponent: 2.0 };
    let temperature = 0.25 + 1.5 * share.powi(2);
    for candidate in row.candidates(only(Stage::Temperature).temperature(1.0).dynamic_temperature(dynamic)) {
        let expected = f64::from(row.logits()[candidate.token.id() as usize]) / temperature;
        assert!((f64::from(candidate.logit) - expected).abs() < 1e-2, "{candidate:?}, expected {expected}");
    }
}

#[test]
fn penalties_lower_what_occurred() {
    let row = row();
    let penalties = Penalties { last_n: 4, repeat: 1.5, frequency: 0.25, presence: 0.5 };
    let mut sampler = row.sampler(only(Stage::Penalties).penalties(penalties));
    // The first one is out of sight; the others occur once and twice.
    let [old, once, twice] = [row.token(b'o'), row.token(b'x'), row.token(b'y')];
    for token in [old, twice, once, twice, row.token(b'z')] {
        sampler.accept_prompt(token).unwrap();
    }
    let penalized = |logit: f32, count: f32| {
        let divided = if logit <= 0.0 { logit * 1.5 } else { logit / 1.5 };
        divided - 0.25 * count - 0.5
    };
    for candidate in row.candidates_of(&mut sampler) {
        let logit = row.logits()[candidate.token.id() as usize];
        let expected = match candidate.token {
            token if token == twice => penalized(logit, 2.0),
            token if token == once || token == row.token(b'z') => penalized(logit, 1.0),
            _ => logit,
        };
        assert!((candidate.logit - expected).abs() < 1e-4, "{candidate:?}, expected {expected}");
    }
}

#[test]
fn dry_lowers_what_would_continue_a_repetition() {
    let row = row();
    let dry = Dry { multiplier: 2.0, base: 1.5, allowed_length: 2, last_n: 64, breakers: vec!["\n".into()] };
    let penalty = |text: &str| {
        let mut sampler = row.sampler(only(Stage::Dry).dry(dry.clone()));
        row.tokens(text).iter().for_each(|token| sampler.accept_prompt(*token).unwrap());
        let left = row.candidates_of(&mut sampler);
        let lowered = left.iter().map(|c| (c.token, row.logits()[c.token.id() as usize] - c.logit));
        lowered.filter(|(_, by)| *by > 1e-3).collect::<Vec<_>>()
    };
    // "wxyz" came before and "wxy" came again: "z" would make four.
    let [(token, by)] = penalty("wxyz--wxy")[..] else { panic!("one token is lowered") };
    assert_eq!(token, row.token(b'z'));
    assert!((by - 2.0 * 1.5f32.powi(1)).abs() < 1e-3, "lowered by {by}");
    assert_eq!(penalty("wxyz--wx\ny"), [], "a line feed breaks the repetition");
    assert_eq!(penalty("abcdefgh"), []);
}

#[test]
fn bias_and_bans_change_the_row() {
    let row = row();
    let [best, other] = [ranked(&row.logits())[0], row.token(b'~')];
    let options = SamplerOptions::unfiltered().logit_bias(other, 3.5).banned(vec![best]);
    let left = row.candidates(options);
    assert_eq!(left.len(), row.logits().len() - 1);
    for candidate in left {
        assert_ne!(candidate.token, best);
        let bias = if candidate.token == other { 3.5 } else { 0.0 };
        assert_eq!(candidate.logit, row.logits()[candidate.token.id() as usize] + bias);
    }
    let pushed = SamplerOptions::greedy().logit_bias(other, 100.0);
    assert_eq!(row.draw(&mut row.sampler(pushed), 1), [other]);
}

#[test]
fn ignore_eos_goes_on_behind_the_end() {
    let llama = Llama::target(1).ending_after(b'e');
    let mut prompted = Prompted::new(&llama, "abc");
    let mut sampler = prompted.sampler(SamplerOptions::greedy());
    let ended = prompted.generate(&mut sampler, 20);
    assert_eq!(prompted.text(&ended), "de");
    assert!(prompted.model.vocab().is_end_of_generation(ended[2]));

    let mut prompted = Prompted::new(&llama, "abc");
    let mut sampler = prompted.sampler(SamplerOptions::greedy().ignore_eos(true));
    assert_eq!(prompted.generate(&mut sampler, 20).len(), 20);
}

#[test]
fn stages_run_in_their_order() {
    let row = row();
    let (top_p, top_k) = (0.5, 3);
    let ordered = |stages: Vec<Stage>| row.candidates(only(Stage::TopK).stages(stages).top_p(top_p).top_k(top_k));
    let (logits, order) = (row.logits(), ranked(&row.logits()));
    // Top-p behind top-k sees probabilities among three tokens, so that one or two of them suffice.
    let among: Vec<f32> = order[..3].iter().map(|token| logits[token.id() as usize]).collect();
    let nucleus = first_of(&[0, 1, 2].map(Token::new), &softmax(&among, 1.0), top_p.into()).len();
    assert!(nucleus < 3);
    assert_eq!(ordered(vec![Stage::TopK, Stage::TopP]).len(), nucleus);
    assert_eq!(ordered(vec![Stage::TopP, Stage::TopK]).len(), 3);
    let words = row.sampler(only(Stage::TopK).stages(vec![Stage::TopP, Stage::TopK])).describe().unwrap();
    assert!(words.find("top-p").unwrap() < words.find("top-k").unwrap(), "{words}");
}

#[test]
fn mirostat_holds_the_surprise() {
    let row = row();
    let tau = 3.0;
    for mirostat in [Mirostat::V1 { tau, eta: 0.1 }, Mirostat::V2 { tau, eta: 0.1 }] {
        let mut sampler = row.sampler(SamplerOptions::default().temperature(1.0).mirostat(mirostat).seed(3));
        let surprise = |sampler: &mut llama_spec::Sampler| {
            sampler.sample(&row.context, row.entry).unwrap();
            -f64::from(sampler.candidates(false).unwrap().selected().unwrap().probability).log2()
        };
        (0..200).for_each(|_| _ = surprise(&mut sampler));
        let mean = (0..2000).map(|_| surprise(&mut sampler)).sum::<f64>() / 2000.0;
        assert!((mean - f64::from(tau)).abs() < 0.15, "{mirostat:?} gives {mean} bits");
    }
}

#[test]
fn adaptive_p_draws_near_its_target() {
    // One token with about 0.6, the others with a few thousandths each.
    let prompted = Prompted::new(&Llama::target(1).with_peak(6.0), "abc");
    let best = ranked(&prompted.logits())[0];
    let share = |target| {
        let options = SamplerOptions::unfiltered().seed(1).adaptive_p(AdaptiveP { target, decay: 0.9 });
        let mut sampler = prompted.sampler(options);
        let hits = (0..200).filter(|_| {
            let token = sampler.sample(&prompted.context, prompted.entry).unwrap();
            sampler.accept(token).unwrap();
            token == best
        });
        hits.count()
    };
    assert!(share(1.0) > 190, "{}", share(1.0));
    assert!(share(0.0) < 10, "{}", share(0.0));
}

#[test]
fn infill_merges_and_cuts() {
    let prompted = Prompted::new(&broad(), "abc");
    let left = prompted.candidates(SamplerOptions::default().top_k(5).stages(vec![Stage::TopK, Stage::Infill]));
    assert_eq!(tokens(&left), BTreeSet::from([ranked(&prompted.logits())[0]]), "only the successor is above a fifth");
}

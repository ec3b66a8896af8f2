//! The distribution of what is generated: with drafts, verified either way, it is that of plain sampling.

use crate::support::{context, together};
use llama_spec::sample::Penalties;
use llama_spec::spec::{Draft, DraftModelSettings, Drafter, Method, SpecConfig};
use llama_spec::{Engine, Model, Request, SamplerOptions, Token};
use llama_spec_tests::rng::Rng;
use llama_spec_tests::zoo::Llama;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const TEXTS: u32 = 700;
const TOKENS: u32 = 3;

/// A target whose distribution is broad, and no two of whose tokens are equally probable.
fn broad() -> Llama {
    Llama::target(1).with_peak(4.0).with_noise(1.0)
}

/// A few candidates are left, so that whole texts come often enough to be counted.
fn samplers() -> Vec<SamplerOptions> {
    let few = || SamplerOptions::default().temperature(1.0).top_p(1.0).min_p(0.0).top_k(4);
    let penalties = Penalties { repeat: 1.1, frequency: 0.7, presence: 0.4, last_n: 4 };
    vec![
        few().temperature(1.5),
        few().top_k(5).top_p(0.8).temperature(1.5),
        few().temperature(1.5).penalties(penalties),
    ]
}

/// Draws from a distribution that is not the target's: the successor in the cycle and some tokens around it.
struct Drawing {
    rng: Rng,
    last: Token,
}

impl Drafter for Drawing {
    fn begin(&mut self, text: &[Token]) {
        self.last = text[text.len() - 1];
    }

    fn extend(&mut self, tokens: &[Token]) {
        self.last = tokens[tokens.len() - 1];
    }

    fn propose(&mut self, limit: usize, draft: &mut Draft) {
        let mut last = self.last;
        for _ in 0..limit {
            let next = |by: i32| Token::new((last.id() + by).rem_euclid(200));
            let from = [(next(1), 0.5), (next(2), 0.25), (Token::new(68), 0.125), (Token::new(80), 0.125)];
            let from: BTreeMap<Token, f32> = from.into_iter().fold(BTreeMap::new(), |mut all, (token, share)| {
                *all.entry(token).or_default() += share;
                all
            });
            let from: Vec<_> = from.into_iter().collect();
            let mut left = self.rng.below(1 << 20) as f32 / (1 << 20) as f32;
            let drawn = from.iter().find(|(_, share)| {
                left -= share;
                left < 0.0
            });
            last = drawn.unwrap_or(&from[0]).0;
            draft.push_drawn(last, &from);
        }
    }
}

/// Texts of consecutive seeds.
fn texts(engine: &Engine, sampler: &SamplerOptions, seed: u32) -> Vec<Vec<Token>> {
    let request = Request::prompt("abc").sampler(sampler.clone().seed(seed)).max_tokens(TOKENS);
    let answers = engine.generate_many(request, TEXTS).unwrap();
    answers.into_iter().map(|answer| answer.output().unwrap().tokens).collect()
}

/// Pearson's test of whether two samples of equal size come from one distribution, as in the tests of sampling: the limit is
/// four standard deviations above the mean, and everything is seeded.
fn chi_squared(one: &[Vec<Token>], other: &[Vec<Token>]) -> Result<(), String> {
    let mut counts: BTreeMap<&[Token], [f64; 2]> = BTreeMap::new();
    for (which, texts) in [one, other].into_iter().enumerate() {
        texts.iter().for_each(|text| counts.entry(text).or_default()[which] += 1.0);
    }
    let (mut bins, mut rest) = (Vec::new(), [0.0; 2]);
    for [a, b] in counts.into_values() {
        match a + b >= 16.0 {
            true => bins.push([a, b]),
            false => rest = [rest[0] + a, rest[1] + b],
        }
    }
    if rest[0] + rest[1] > 0.0 {
        bins.push(rest);
    }
    assert!(bins.len() > 8, "only {} bins: the test would say nothing", bins.len());
    let statistic: f64 = bins.iter().map(|[a, b]| (a - b).powi(2) / (a + b)).sum();
    let freedom = (bins.len() - 1) as f64;
    let limit = freedom + 4.0 * (2.0 * freedom).sqrt();
    if statistic < limit {
        Ok(())
    } else {
        Err(format!("chi squared is {statistic:.1}, limit {limit:.1}, {freedom} degrees"))
    }
}

/// The engines that are compared, each with what it must have accepted and rejected some of.
fn engines(model: &Model) -> Vec<(&'static str, Engine)> {
    let draft = Model::load(broad().draft(0.5).cached().unwrap()).unwrap();
    let base = || Engine::builder(model).context(context(4));
    // Counted, so that each text has random numbers of its own.
    let drawing = || {
        let made = Arc::new(AtomicU64::new(0));
        move || Drawing { rng: Rng::new(made.fetch_add(1, Ordering::Relaxed), "draws", 0), last: Token::new(0) }
    };
    let fixed = || SpecConfig::off().fixed_length(12);
    let simple = |probabilistic| {
        let settings = DraftModelSettings { max: 2, probabilistic, ..Default::default() };
        SpecConfig::new([Method::DraftSimple]).fixed_length(4).draft_model(settings)
    };
    vec![
        ("a drawing drafter that is trusted", base().drawing_drafter(drawing()).speculation(fixed()).build().unwrap()),
        ("a drawing drafter that is not", base().drafter(drawing()).speculation(fixed()).build().unwrap()),
        ("a draft model that draws", base().draft(&draft).speculation(simple(true)).build().unwrap()),
        ("a draft model", base().draft(&draft).speculation(simple(false)).build().unwrap()),
    ]
}

#[test]
fn drafts_leave_the_distribution_alone() {
    let model = Model::load(broad().cached().unwrap()).unwrap();
    let plain = Engine::builder(&model).context(context(4)).speculation(SpecConfig::off()).build().unwrap();
    let engines = engines(&model);
    for sampler in samplers() {
        let expected = texts(&plain, &sampler, 1);
        for (name, engine) in &engines {
            let found = texts(engine, &sampler, 100_000);
            chi_squared(&expected, &found).unwrap_or_else(|why| panic!("{name}, {sampler:?}: {why}"));
        }
    }
    for (name, engine) in &engines {
        let total = engine.stats().total;
        assert!(total.accepted > 100 && total.accepted < total.drafted, "{name}: {total:?}");
    }
}

/// Where tokens are compared, the same random numbers are used as without drafts.
#[test]
fn compared_tokens_are_those_of_the_seed() {
    let model = Model::load(broad().cached().unwrap()).unwrap();
    let plain = Engine::builder(&model).context(context(4)).speculation(SpecConfig::off()).build().unwrap();
    let engines = engines(&model);
    for sampler in samplers() {
        let request = |seed| Request::prompt("abc").sampler(sampler.clone().seed(seed)).max_tokens(12);
        let outputs = |engine: &Engine| together(engine, (0..60).map(request).collect());
        let tokens = |engine: &Engine| outputs(engine).into_iter().map(|output| output.tokens).collect::<Vec<_>>();
        let expected = tokens(&plain);
        for at in [1, 3] {
            assert_eq!(tokens(&engines[at].1), expected, "{}, {sampler:?}", engines[at].0);
        }
        // Rejection draws more, so there it is only the distribution.
        assert_ne!(tokens(&engines[0].1), expected);
    }
}

/// The comparison of distributions must be able to fail.
#[test]
fn another_temperature_and_lies_are_noticed() {
    let model = Model::load(broad().cached().unwrap()).unwrap();
    let engine = Engine::builder(&model).context(context(4)).speculation(SpecConfig::off()).build().unwrap();
    let sampler = samplers().remove(0);
    let (expected, other) = (texts(&engine, &sampler, 1), texts(&engine, &sampler.clone().temperature(1.0), 100_000));
    assert!(chi_squared(&expected, &other).is_err());
    // A drafter that is trusted and always drafts the same, while it says that it draws.
    struct Liar;
    impl Drafter for Liar {
        fn begin(&mut self, _: &[Token]) {}
        fn extend(&mut self, _: &[Token]) {}
        fn propose(&mut self, limit: usize, draft: &mut Draft) {
            let from: Vec<_> = (60..90).map(|id| (Token::new(id), 1.0 / 30.0)).collect();
            (0..limit).for_each(|_| draft.push_drawn(Token::new(68), &from));
        }
    }
    let lied_to = Engine::builder(&model).context(context(4)).drawing_drafter(|| Liar);
    let lied_to = lied_to.speculation(SpecConfig::off().fixed_length(12)).build().unwrap();
    assert!(chi_squared(&expected, &texts(&lied_to, &sampler, 100_000)).is_err());
}

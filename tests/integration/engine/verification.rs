//! Whatever decides about tokens and the end of a text decides alike with and without drafts.

use crate::pairs::Loaded;
use crate::scripted::{RIGHT, Scripted};
use crate::support::{Plain, alone, assert_same, builder, context, model, together, varied};
use crate::table::{PROMPTS, few, greedy};
use llama_spec::sample::{Dry, Grammar, Mirostat, Penalties, Xtc};
use llama_spec::spec::{Method, SpecConfig};
use llama_spec::{Engine, Model, ModelFile, Request, SamplerOptions, StopReason};
use llama_spec_tests::zoo::{self, Llama};
use std::sync::Arc;

/// Samplers of all sorts, all with a seed.
fn samplers(model: &Model) -> Vec<SamplerOptions> {
    let token = |text: &str| model.vocab().tokenize_plain(text).unwrap()[0];
    let seeded = || varied(17);
    let schema = serde_json::json!({
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer"}, "tags": {"type": "array", "items": {"enum": ["ab", "cd"]}}},
        "required": ["name", "age", "tags"],
    });
    let penalties = Penalties { repeat: 1.3, frequency: 0.5, presence: 0.7, last_n: 32 };
    let words = "root ::= word (\" \" word)* \".\"\nword ::= [a-f]+";
    vec![
        seeded(),
        SamplerOptions::unfiltered().temperature(5.0).seed(3),
        seeded().penalties(penalties),
        SamplerOptions::greedy().penalties(penalties),
        seeded().logit_bias(token("k"), 9.0).logit_bias(token("e"), -40.0).banned(vec![token("m")]),
        seeded().grammar(Grammar::gbnf(words)),
        SamplerOptions::greedy().grammar(Grammar::gbnf(words)),
        seeded().grammar(Grammar::JsonSchema(schema.clone())),
        SamplerOptions::greedy().grammar(Grammar::JsonSchema(schema)).grammar_first(true),
        seeded().min_tokens(30),
        seeded().ignore_eos(true),
        SamplerOptions::greedy().ignore_eos(true),
        SamplerOptions::greedy().min_tokens(37),
        seeded().top_k(3).min_p(0.0),
        seeded().typical_p(0.8).top_n_sigma(2.0),
        seeded().xtc(Xtc { probability: 0.5, threshold: 0.05 }),
        seeded().dry(Dry::default()),
        seeded().mirostat(Mirostat::V2 { tau: 4.0, eta: 0.1 }),
    ]
}

#[test]
fn every_sampler_gives_the_text_it_gives_without_drafts() {
    let model = model("chat");
    let draft = ModelFile::open(zoo::file("draft-0.8")).unwrap();
    let config = SpecConfig::new([Method::NgramSimple, Method::DraftSimple]).fixed_length(4);
    let plain = Plain::new(&model);
    let requests: Vec<_> = samplers(&model)
        .into_iter()
        .flat_map(|sampler| {
            ["The quick", "a"].map(|prompt| Request::prompt(prompt).sampler(sampler.clone()).max_tokens(70))
        })
        .collect();
    let expected: Vec<_> = requests.iter().map(|request| plain.run(request)).collect();
    let reasons = |reason| expected.iter().filter(|output| output.reason == Some(reason)).count();
    assert!(reasons(StopReason::EndOfText) > 3 && reasons(StopReason::MaxTokens) > 3, "these texts would show little");
    for slots in [1, 4] {
        let engine =
            Engine::builder(&model).context(context(slots)).draft(&draft).speculation(config.clone()).build().unwrap();
        let outputs = together(&engine, requests.clone());
        for ((request, got), expected) in requests.iter().zip(&outputs).zip(&expected) {
            assert_same(got, expected, &(slots, request));
        }
        let stats = engine.stats().total;
        assert!(stats.accepted > 100 && stats.accepted < stats.drafted, "{stats:?}");
    }
}

/// A draft that is always right: every end falls into the middle of what is accepted.
struct Mind {
    engine: Engine,
    plain: Plain,
}

impl Mind {
    fn new(model: &Model, prompts: &[&str]) -> Self {
        let plain = Plain::new(model);
        let whole = |prompt: &&str| {
            // Beyond every end that is asked for.
            let sampler = SamplerOptions::greedy().ignore_eos(true);
            let output = plain.run(&Request::prompt(*prompt).sampler(sampler).max_tokens(120));
            [model.vocab().tokenize(prompt).unwrap(), output.tokens].concat()
        };
        let texts = Arc::new(prompts.iter().map(whole).collect());
        let builder =
            Engine::builder(model).context(context(4)).speculation(SpecConfig::off().draft_max(16).fixed_length(16));
        let engine = builder.drafter(move || Scripted::new(&texts, RIGHT)).build().unwrap();
        Self { engine, plain }
    }

    /// All of these requests at once, each as without drafts.
    fn check(&self, requests: Vec<Request>) -> Vec<llama_spec::engine::Output> {
        let outputs = together(&self.engine, requests.clone());
        for (request, got) in requests.iter().zip(&outputs) {
            assert_same(got, &self.plain.run(request), request);
            // The next text begins in what the end left behind.
            assert!(got.tokens.len() < 2 || got.stats.accepted > 0, "{request:?}: {:?}", got.stats);
        }
        outputs
    }
}

#[test]
fn ends_inside_of_what_is_accepted_cut_exactly() {
    for name in ["chat", "mamba", "qwen35"] {
        let model = model(name);
        let mind = Mind::new(&model, &PROMPTS);
        mind.check((0..20).map(|tokens| greedy(PROMPTS[tokens % 3], tokens as u32)).collect());
        let text = mind.plain.run(&greedy(PROMPTS[0], 60)).text;
        let stops = (1..10).map(|at| {
            // Of several lengths, so that they begin and end at all places of a draft.
            let stop: String = text.chars().skip(at * 3).take(1 + at % 4).collect();
            greedy(PROMPTS[0], 60).stop([stop, "never seen".into()])
        });
        let stopped = mind.check(stops.collect());
        assert!(stopped.iter().filter(|output| output.reason == Some(StopReason::StopString)).count() > 5, "{name}");
    }
}

#[test]
fn the_end_of_a_text_and_of_a_grammar_end_it_in_mid_draft() {
    let model = model("chat");
    let mind = Mind::new(&model, &PROMPTS);
    // The cycle has 80 characters, of which the last one before an end comes somewhere in each text.
    let ended = mind.check(PROMPTS.map(|prompt| greedy(prompt, 100)).to_vec());
    assert!(ended.iter().all(|output| output.reason == Some(StopReason::EndOfText)));
    let least = (0..12).map(|more| {
        let least = ended[0].tokens.len() as u32 + more;
        Request::prompt(PROMPTS[0]).sampler(SamplerOptions::greedy().min_tokens(least)).max_tokens(100)
    });
    mind.check(least.collect());
    let exactly = |count: usize| {
        let grammar = Grammar::gbnf(format!("root ::= [a-zA-Z,.]{{{count}}}"));
        Request::prompt("abc").sampler(SamplerOptions::greedy().grammar(grammar)).max_tokens(100)
    };
    let mind = Mind::new(&model, &["abc"]);
    for (count, output) in (1..20).zip(mind.check((1..20).map(exactly).collect())) {
        assert_eq!((output.tokens.len(), output.reason), (count, Some(StopReason::EndOfText)));
    }
}

/// Tokens are bytes here, so every character but the simplest is split over several of them.
#[test]
fn characters_split_over_tokens_come_whole() {
    let target = Llama::target(1).with_cycle("xé…\u{1f601}z");
    let model = Model::load(target.cached().unwrap()).unwrap();
    let mind = Mind::new(&model, &["x"]);
    let request = |tokens| greedy("x", tokens);
    let outputs = mind.check((1..40).map(request).collect());
    let mut events = mind.engine.generate(request(33)).unwrap().map(Result::unwrap);
    assert!(events.by_ref().all(|event| !event.text().contains('\u{fffd}')));
    assert!(outputs[32].text.starts_with("é…\u{1f601}zxé…\u{1f601}z"), "{}", outputs[32].text);
    // A stop string of which only a part is in one draft.
    let stopped = mind.check(vec![request(40).stop(["zxé"]), request(40).stop(["…\u{1f601}zxé…"])]);
    assert_eq!([stopped[0].text.as_str(), &stopped[1].text], ["é…\u{1f601}", "é"]);
}

#[test]
fn log_probabilities_are_those_without_drafts() {
    for pair in few() {
        let loaded = Loaded::new(pair);
        let plain = loaded.reference();
        let mut requests: Vec<_> = PROMPTS[..3].iter().map(|prompt| greedy(prompt, 30).logprobs(4)).collect();
        // Sampling may turn on the last digit, in which some targets differ with the size of a batch.
        let sampler = if matches!(pair.target, "target" | "recall") { varied(4) } else { SamplerOptions::greedy() };
        requests.push(Request::prompt(PROMPTS[3]).sampler(sampler).max_tokens(30).logprobs(2));
        requests.push(greedy(PROMPTS[4], 20).logprobs(0));
        let engine = loaded.engine(4, 5);
        for (request, got) in requests.iter().zip(together(&engine, requests.clone())) {
            let expected = plain.run(request);
            assert_same(&got, &expected, &(pair, request));
            assert_eq!(got.logprobs.len(), got.tokens.len(), "{pair:?}, {request:?}");
            for (at, (got, expected)) in got.logprobs.iter().zip(&expected.logprobs).enumerate() {
                // Improbable tokens have large logarithms, and these no more digits than others.
                let near = |one: f32, other: f32| (one - other).abs() < 1e-4 * one.abs().max(1.0);
                let about = || format!("{pair:?}, {request:?}, token {at}: {got:?}, expected {expected:?}");
                assert!(near(got.logprob, expected.logprob), "{}", about());
                assert_eq!(got.top.len(), request.logprobs.unwrap() as usize, "{}", about());
                let tops = got.top.iter().zip(&expected.top);
                assert!(tops.clone().all(|(one, other)| near(one.1, other.1)), "{}", about());
                // Two of the most probable may be equally probable.
                let same = |(one, other): (&(llama_spec::Token, f32), &(llama_spec::Token, f32))| {
                    one.0 == other.0 || near(one.1, other.1)
                };
                assert!(tops.clone().all(same), "{}", about());
            }
        }
    }
}

#[test]
fn several_answers_are_those_of_their_seeds() {
    let draft = ModelFile::open(zoo::file("draft-0.8")).unwrap();
    let config = SpecConfig::new([Method::NgramSimple, Method::DraftSimple]).fixed_length(4);
    for target in ["target", "mamba"] {
        let engine = match target {
            "target" => builder(target, 4).draft(&draft).speculation(config.clone()).build().unwrap(),
            _ => builder(target, 4).speculation(SpecConfig::new([Method::NgramMapK]).fixed_length(12)).build().unwrap(),
        };
        for prompt in [PROMPTS[2], "a"] {
            let request = |seed| Request::prompt(prompt).sampler(varied(seed)).max_tokens(40);
            let answers = engine.generate_many(request(100), 7).unwrap();
            let answers: Vec<_> = answers.into_iter().map(|answer| answer.output().unwrap()).collect();
            for (seed, answer) in (100..).zip(&answers) {
                assert_same(answer, &alone(&engine, request(seed)), &(target, prompt, seed));
            }
            assert!(answers.iter().any(|answer| answer.text != answers[0].text), "{target}: all answers are the same");
        }
    }
}

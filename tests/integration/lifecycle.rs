//! Loading, generating and dropping in every order: run under AddressSanitizer by `cargo xtask memcheck`, and small enough
//! for every test run.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use llama_spec::sample::Grammar;
use llama_spec::spec::{Method, SpecConfig};
use llama_spec::{Batch, Context, ContextOptions, Device, GenerateOptions, Generator, Model, SamplerOptions, Slot};
use llama_spec_tests::zoo;

fn options() -> ContextOptions {
    ContextOptions::default().length_per_slot(256).threads(1)
}

fn methods() -> [SpecConfig; 5] {
    [
        SpecConfig::off(),
        SpecConfig::new([Method::NgramSimple]).fixed_length(12),
        SpecConfig::new([Method::NgramMapK, Method::NgramMapK4v]).fixed_length(12),
        SpecConfig::new([Method::NgramMod, Method::NgramCache]).fixed_length(12),
        SpecConfig::new([Method::DraftSimple]).fixed_length(4),
    ]
}

#[test]
fn load_generate_drop() {
    for config in methods() {
        let target = Model::load(zoo::file("target")).unwrap();
        let draft = Model::load(zoo::file("draft-0.8")).unwrap();
        let builder = Generator::builder(&target).context(options()).speculation(config.clone());
        let builder = if config.needs_draft() { builder.draft(&draft) } else { builder };
        let mut generator = builder.build().unwrap();
        // The generator keeps what it needs alive.
        drop((target, draft));
        for prompt in ["abc", "abcdef", "xyz"] {
            let text: String = generator
                .generate(prompt, GenerateOptions::greedy().max_tokens(50))
                .unwrap()
                .map(|event| event.unwrap().text().to_owned())
                .collect();
            assert_eq!(text.len(), 50);
        }
        assert_eq!(generator.generate("abc", GenerateOptions::greedy()).unwrap().take(3).count(), 3);
    }
}

#[test]
fn samplers_of_every_kind_come_and_go() {
    let model = Model::load(zoo::file("target")).unwrap();
    let mut generator = Generator::builder(&model).context(options()).build().unwrap();
    let samplers = [
        SamplerOptions::greedy(),
        SamplerOptions::default().temperature(0.9).seed(1),
        SamplerOptions::greedy().grammar(Grammar::gbnf("root ::= [a-z]*")),
        SamplerOptions::greedy().grammar(Grammar::gbnf("root ::= \"unclosed")),
    ];
    for sampler in samplers {
        let broken = matches!(&sampler.grammar, Some(Grammar::Gbnf(text)) if text.contains("unclosed"));
        let made = generator.generate("abc", GenerateOptions::sampled(sampler).max_tokens(10));
        assert_eq!(made.is_err(), broken);
        made.into_iter().flatten().for_each(|event| drop(event.unwrap()));
    }
}

#[test]
fn contexts_outlive_the_model_they_were_made_of() {
    let mut contexts: Vec<Context> = {
        let model = Model::load(zoo::file("target")).unwrap();
        (0..3).map(|_| model.context(&options()).unwrap()).collect()
    };
    let mut batch = Batch::new();
    let prompt = contexts[0].model().vocab().tokenize("abc").unwrap();
    batch.push_prompt(&prompt, 0, Slot::FIRST);
    for context in &mut contexts {
        context.decode(&batch).unwrap();
        let state = context.memory().save(Slot::FIRST).unwrap();
        context.memory().clear().unwrap();
        context.memory().restore(Slot::FIRST, &state).unwrap();
        assert_eq!(context.memory().range(Slot::FIRST).unwrap(), Some((0, prompt.len() as u32 - 1)));
    }
}

#[test]
fn failed_loads_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    for broken in llama_spec_tests::broken::all(folder.path()).unwrap() {
        Model::load(&broken.path).expect_err(broken.name);
    }
}

#[test]
fn a_cancelled_load_can_be_tried_again() {
    use std::ops::ControlFlow;
    let path = zoo::file("target");
    let cancelled = Model::builder(&path).on_progress(|_| ControlFlow::Break(())).load();
    assert!(matches!(cancelled, Err(llama_spec::Error::LoadCancelled { .. })), "{cancelled:?}");
    let panicked =
        std::panic::catch_unwind(|| Model::builder(&path).on_progress(|_| panic!("from the callback")).load());
    assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"from the callback"));
    let (seen, report) = std::sync::mpsc::channel();
    Model::builder(&path)
        .on_progress(move |share| {
            let _ = seen.send(share);
            ControlFlow::Continue(())
        })
        .load()
        .unwrap();
    let shares: Vec<f32> = report.try_iter().collect();
    assert!(shares.windows(2).all(|pair| pair[0] <= pair[1]) && shares.last() == Some(&1.0), "{shares:?}");
}

#[test]
fn many_threads_load_and_generate_at_once() {
    let model = Model::load(zoo::file("target")).unwrap();
    let expected = generate(&model);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| generate(&model))).collect();
        threads.into_iter().for_each(|thread| assert_eq!(thread.join().unwrap(), expected));
    });
    assert!(!Device::all().unwrap().is_empty());
}

fn generate(model: &Model) -> String {
    let config = SpecConfig::new([Method::NgramMod]).fixed_length(12);
    let mut generator = Generator::builder(model).context(options()).speculation(config).build().unwrap();
    let generation = generator.generate("abc", GenerateOptions::greedy().max_tokens(60)).unwrap();
    generation.map(|event| event.unwrap().text().to_owned()).collect()
}

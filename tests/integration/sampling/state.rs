//! Copies and resets.

use super::support::{Prompted, broad};
use llama_spec::sample::{AdaptiveP, Dry, Grammar, Mirostat, Penalties, SamplerOptions, Xtc};
use llama_spec::{Error, Sampler, Token};

/// Samples and accepts `n` tokens from one row.
fn go_on(prompted: &Prompted, sampler: &mut Sampler, n: usize) -> Vec<Token> {
    let step = |_| {
        let token = sampler.sample(&prompted.context, prompted.entry).unwrap();
        sampler.accept(token).unwrap();
        token
    };
    (0..n).map(step).collect()
}

/// Options whose samplers keep all kinds of state.
fn stateful() -> Vec<SamplerOptions> {
    let penalties = Penalties { repeat: 1.3, presence: 1.0, ..Penalties::default() };
    let grammar = Grammar::gbnf(r#"root ::= ("ab" | "cd" | [e-z0-9])+"#);
    vec![
        SamplerOptions::default().temperature(1.5).penalties(penalties).dry(Dry::default()).seed(5),
        SamplerOptions::unfiltered().grammar(grammar.clone()).seed(5),
        SamplerOptions::unfiltered().grammar(grammar).grammar_first(true).seed(5),
        SamplerOptions::default().xtc(Xtc::default()).seed(5),
        SamplerOptions::default().temperature(1.0).mirostat(Mirostat::V1 { tau: 3.0, eta: 0.1 }).seed(5),
        SamplerOptions::default().temperature(1.0).mirostat(Mirostat::V2 { tau: 3.0, eta: 0.1 }).seed(5),
    ]
}

#[test]
fn a_clone_goes_on_as_the_original() {
    let prompted = Prompted::new(&broad(), "abc");
    for options in stateful() {
        let mut original = prompted.sampler(options.clone());
        go_on(&prompted, &mut original, 25);
        original.sample(&prompted.context, prompted.entry).unwrap();
        let mut clone = original.try_clone().unwrap();
        assert!(matches!(clone.candidates(true), Err(Error::Sample { .. })), "a clone has sampled nothing yet");
        let went_on = go_on(&prompted, &mut original, 50);
        drop(original);
        assert_eq!(go_on(&prompted, &mut clone, 50), went_on, "{options:?}");
    }
}

#[test]
fn what_cannot_be_copied_is_refused() {
    let prompted = Prompted::new(&broad(), "abc");
    let sampler = prompted.sampler(SamplerOptions::default().adaptive_p(AdaptiveP::default()));
    let error = sampler.try_clone().unwrap_err();
    assert!(error.to_string().contains("adaptive_p"), "{error}");
}

#[test]
fn a_reset_sampler_is_as_new() {
    let prompted = Prompted::new(&broad(), "abc");
    let adaptive = SamplerOptions::unfiltered().adaptive_p(AdaptiveP::default()).seed(5);
    for options in stateful().into_iter().chain([adaptive]) {
        let mut sampler = prompted.sampler(options.clone());
        let first = go_on(&prompted, &mut sampler, 31);
        sampler.reset().unwrap();
        assert!(sampler.candidates(false).is_err());
        assert_eq!(go_on(&prompted, &mut sampler, 31), first, "{options:?}");
    }
}

#[test]
fn samplers_move_between_threads_and_outlive_other_handles_of_the_model() {
    let Prompted { model, context, entry, .. } = Prompted::new(&broad(), "abc");
    let mut sampler = Sampler::new(&model, &SamplerOptions::unfiltered().seed(1)).unwrap();
    let token = sampler.sample(&context, entry).unwrap();
    drop((model, context));
    let moved = std::thread::spawn(move || {
        sampler.accept(token).unwrap();
        sampler.reset().unwrap();
        sampler.model().vocab().contains(token)
    });
    assert!(moved.join().unwrap());
}

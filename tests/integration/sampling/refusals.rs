//! What is refused, with a typed error and not with an abort.

use super::support::{Prompted, broad};
use llama_spec::sample::{Grammar, LogitBias, ReasoningTags, SamplerOptions, Stage, Trigger};
use llama_spec::{Batch, ContextOptions, Error, Model, Sampler, Slot, Token};
use llama_spec_tests::gguf::TensorType;
use llama_spec_tests::zoo::Llama;

#[test]
fn options_out_of_range_make_no_sampler() {
    let prompted = Prompted::new(&Llama::target(1), "abc");
    let refused = |options: SamplerOptions| match Sampler::new(&prompted.model, &options) {
        Err(Error::Setting { setting, .. }) => setting,
        other => panic!("{options:?} gave {other:?}"),
    };
    let options = SamplerOptions::default;
    assert_eq!(refused(options().temperature(f32::NAN)), "temperature");
    assert_eq!(refused(options().top_p(-0.5)), "top_p");
    assert_eq!(refused(options().reasoning_budget(3)), "reasoning_budget");
    let outside = [Token::new(-1), Token::new(i32::MIN), Token::new(261), Token::new(i32::MAX)];
    for token in outside {
        assert_eq!(refused(options().logit_bias(token, 1.0)), "logit_bias");
        assert_eq!(refused(options().banned(vec![token])), "banned");
        let lazy = Grammar::Lazy { gbnf: "root ::= \"a\"".into(), triggers: vec![Trigger::Token(token)] };
        assert_eq!(refused(options().grammar(lazy)), "grammar.triggers");
    }
    let tags = ReasoningTags { start: "<".into(), ends: vec!["<|im_end|>".into()] };
    assert_eq!(refused(options().reasoning_tags(tags).grammar(Grammar::gbnf("root ::= \"a\""))), "reasoning_tags");
}

#[test]
fn extreme_values_within_the_ranges_work() {
    let prompted = Prompted::new(&broad(), "abc");
    let everything = |bias| {
        let mut options = SamplerOptions::unfiltered();
        options.logit_bias = (0..261).map(|id| LogitBias { token: Token::new(id), bias }).collect();
        options
    };
    for options in [
        SamplerOptions::default().temperature(1000.0).top_k(u32::MAX / 2).min_p(1.0).typical_p(0.0),
        SamplerOptions::default().temperature(0.0001).top_p(0.0).min_keep(1 << 24),
        everything(1e6),
        everything(-1e6),
        SamplerOptions::default().stages(vec![]),
        SamplerOptions::default().stages(vec![Stage::Infill]),
    ] {
        let mut sampler = prompted.sampler(options.clone());
        for token in prompted.draw(&mut sampler, 20) {
            assert!(prompted.model.vocab().contains(token), "{options:?}");
        }
    }
}

#[test]
fn tokens_outside_the_vocabulary_are_not_accepted() {
    let prompted = Prompted::new(&Llama::target(1), "abc");
    let mut sampler = prompted.sampler(SamplerOptions::default());
    for id in [-1, 261, i32::MAX, i32::MIN] {
        assert!(matches!(sampler.accept(Token::new(id)), Err(Error::Sample { .. })));
        assert!(matches!(sampler.accept_prompt(Token::new(id)), Err(Error::Sample { .. })));
    }
    sampler.accept(prompted.token(b'a')).unwrap();
}

#[test]
fn rows_that_do_not_exist_are_refused() {
    let mut prompted = Prompted::new(&Llama::target(1), "abc");
    let mut sampler = prompted.sampler(SamplerOptions::default());
    // The first entry of the prompt had no output asked for.
    for entry in [0, 3, 1000, usize::MAX] {
        let error = sampler.sample(&prompted.context, entry).unwrap_err();
        assert!(matches!(error, Error::Sample { .. }), "{error}");
    }
    assert!(sampler.candidates(true).is_err(), "nothing was sampled");
    sampler.sample(&prompted.context, prompted.entry).unwrap();

    prompted.forget_from(0);
    let mut batch = Batch::new();
    batch.push_prompt(&prompted.tokens(&"x".repeat(1100)), 0, Slot::FIRST);
    prompted.context.decode(&batch).unwrap_err();
    assert!(sampler.sample(&prompted.context, prompted.entry).is_err(), "the last decode failed");
}

#[test]
fn another_models_context_is_refused() {
    let prompted = Prompted::new(&Llama::target(1), "abc");
    let same_file = Model::load(Llama::target(1).cached().unwrap()).unwrap();
    let other = Model::load(Llama::target(1).other_vocabulary().cached().unwrap()).unwrap();
    for model in [same_file, other] {
        let mut sampler = Sampler::new(&model, &SamplerOptions::greedy()).unwrap();
        let error = sampler.sample(&prompted.context, prompted.entry).unwrap_err();
        assert!(error.to_string().contains("another model"), "{error}");
        let mut accepted = Vec::new();
        assert!(sampler.verify(&prompted.context, &[prompted.entry], &[], &mut accepted).is_err());
    }
}

#[test]
fn nothing_decoded_is_refused() {
    let model = Model::load(Llama::target(1).cached().unwrap()).unwrap();
    let context = model.context(&ContextOptions::default().length_per_slot(64)).unwrap();
    let mut sampler = Sampler::new(&model, &SamplerOptions::greedy()).unwrap();
    assert!(sampler.sample(&context, 0).is_err());
}

#[test]
fn logits_that_are_not_numbers_are_refused() {
    let prompted = Prompted::new(&Llama::target(1).with_peak(f32::NAN), "abc");
    assert!(prompted.logits().iter().any(|logit| logit.is_nan()), "the model is broken on purpose");
    for options in [SamplerOptions::greedy(), SamplerOptions::default()] {
        let mut sampler = prompted.sampler(options);
        let error = sampler.sample(&prompted.context, prompted.entry).unwrap_err();
        assert!(matches!(error, Error::NotFinite { .. }), "{error}");
        let mut accepted = vec![Token::new(0)];
        let error = sampler.verify(&prompted.context, &[prompted.entry], &[], &mut accepted).unwrap_err();
        assert!(matches!(error, Error::NotFinite { .. }), "{error}");
        assert_eq!(accepted, []);
        let error =
            sampler.verify_rejection(&prompted.context, &[prompted.entry], &[], &[], &mut accepted).unwrap_err();
        assert!(matches!(error, Error::NotFinite { .. }), "{error}");
    }
}

/// One token has an embedding of NaN, so that the rows before it are right and those behind it are not.
#[test]
fn what_was_accepted_before_a_broken_row_is_told() {
    let llama = Llama::target(1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("broken.gguf");
    llama.write(&path).unwrap();
    let gguf = llama.gguf();
    let embeddings = gguf.tensors().iter().find(|tensor| tensor.name() == "token_embd.weight").unwrap();
    assert_eq!(embeddings.kind(), TensorType::F32);
    let (mut file, data) = (std::fs::read(&path).unwrap(), embeddings.data());
    let start = file.windows(256).position(|window| window == &data[..256]).unwrap();
    let row = embeddings.shape()[0] as usize * size_of::<f32>();
    let broken = start + usize::from(b'e') * row;
    file[broken..broken + row].chunks_mut(4).for_each(|number| number.copy_from_slice(&f32::NAN.to_le_bytes()));
    std::fs::write(&path, file).unwrap();

    let mut prompted = Prompted::of(Model::load(&path).unwrap(), "ab");
    let draft = prompted.tokens("def");
    let entries = prompted.decode_all(&[prompted.tokens("c"), draft.clone()].concat());
    let mut accepted = Vec::new();
    for options in [SamplerOptions::greedy(), SamplerOptions::default()] {
        let mut sampler = prompted.sampler(options.clone());
        let error = sampler.verify(&prompted.context, &entries, &draft, &mut accepted).unwrap_err();
        assert!(matches!(error, Error::NotFinite { .. }), "{error}");
        assert_eq!(accepted, draft[..2]);
        let mut sampler = prompted.sampler(options);
        let certain = [&[][..]; 3];
        let error = sampler.verify_rejection(&prompted.context, &entries, &draft, &certain, &mut accepted).unwrap_err();
        assert!(matches!(error, Error::NotFinite { .. }), "{error}");
        assert_eq!(accepted, draft[..2]);
    }
}

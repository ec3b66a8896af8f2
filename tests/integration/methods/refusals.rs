//! What cannot work is refused with the reason, before anything is computed.

use crate::lengths::config;
use crate::pairs::context;
use llama_spec::spec::Method;
use llama_spec::{Error, Generator, Model};
use llama_spec_tests::zoo;

fn load(name: &str) -> Model {
    Model::load(zoo::file(name)).unwrap()
}

fn refused(target: &str, draft: Option<&str>, methods: &[Method]) -> String {
    let (target, draft) = (load(target), draft.map(load));
    let builder = Generator::builder(&target).context(context()).speculation(config(methods, 3));
    let builder = draft.iter().fold(builder, |builder, draft| builder.draft(draft));
    let error = builder.build().expect_err("must be refused");
    assert!(matches!(error, Error::Incompatible(_) | Error::Speculation { .. }), "{error:?}");
    error.to_string()
}

#[test]
fn drafts_that_do_not_fit_are_refused() {
    for (draft, method, word) in [
        ("eagle3-other-width", Method::DraftEagle3, "target-width"),
        ("eagle3-layer-beyond", Method::DraftEagle3, "layer-ids"),
        ("dflash-other-width", Method::DraftDflash, "target-width"),
        ("dflash-layer-beyond", Method::DraftDflash, "layer-ids"),
        ("dflash-no-mask", Method::DraftDflash, "mask-token"),
        ("gemma4-assistant", Method::DraftMtp, "mtp-architecture"),
        ("gemma4-assistant", Method::DraftSimple, "choose draft-mtp"),
        ("draft-0.8", Method::DraftEagle3, "method-file"),
        ("draft-0.8", Method::DraftDflash, "method-file"),
        ("draft-0.8", Method::DraftMtp, "method-file"),
        ("eagle3", Method::DraftSimple, "choose draft-eagle3"),
        ("dflash", Method::DraftSimple, "choose draft-dflash"),
    ] {
        let why = refused("target", Some(draft), &[method]);
        assert!(why.contains(word), "{draft} as {method}: {why}");
    }
}

#[test]
fn methods_without_what_they_need_are_refused() {
    assert!(refused("target", None, &[Method::DraftMtp]).contains("mtp-heads"));
    assert!(refused("target", None, &[Method::DraftEagle3]).contains("draft-missing"));
    let two = refused("target", Some("eagle3"), &[Method::DraftSimple, Method::DraftEagle3]);
    assert!(two.contains("one-model-method"), "{two}");
}

#[test]
fn heads_that_were_not_loaded_are_named_with_the_cure() {
    let embedded = refused("qwen35-mtp", None, &[Method::DraftMtp]);
    assert!(embedded.contains("target") && embedded.contains("mtp(true)"), "{embedded}");
    let separate = refused("qwen35", Some("qwen35-mtp"), &[Method::DraftMtp]);
    assert!(separate.contains("draft") && separate.contains("mtp(true)"), "{separate}");
}

#[test]
fn heads_that_are_not_in_the_file_are_refused() {
    let target = Model::builder(zoo::file("qwen35-declared")).mtp(true).load().unwrap();
    let builder = Generator::builder(&target).context(context()).speculation(config(&[Method::DraftMtp], 3));
    let error = builder.build().expect_err("must be refused");
    assert!(error.to_string().contains("mtp-heads"), "{error}");
}

#[test]
fn heads_of_another_width_are_refused() {
    let target = load("qwen35");
    let draft = Model::builder(zoo::file("qwen35-narrow-mtp")).mtp(true).load().unwrap();
    let builder = Generator::builder(&target).draft(&draft).speculation(config(&[Method::DraftMtp], 3));
    let error = builder.context(context()).build().expect_err("must be refused");
    assert!(error.to_string().contains("width"), "{error}");
}

#[test]
fn a_target_without_hidden_states_is_refused() {
    let why = refused("mamba", Some("eagle3"), &[Method::DraftEagle3]);
    assert!(why.contains("target-layers"), "{why}");
}

#[test]
fn assistants_that_do_not_fit_are_refused() {
    let wide = refused("gemma4", Some("gemma4-assistant-wide"), &[Method::DraftMtp]);
    assert!(wide.contains("width"), "{wide}");
    assert!(refused("gemma4", Some("gemma4-assistant"), &[Method::DraftSimple]).contains("choose draft-mtp"));
}

/// As far as the architecture tells, nobody has to name the method.
#[test]
fn the_kind_of_the_draft_gives_the_method() {
    for (target, draft, method) in [
        ("gemma4", "gemma4-assistant", Method::DraftMtp),
        ("target", "eagle3", Method::DraftEagle3),
        ("target", "dflash", Method::DraftDflash),
        ("target", "draft-0.8", Method::DraftSimple),
    ] {
        let (target, draft) = (load(target), load(draft));
        let generator = Generator::builder(&target).draft(&draft).context(context()).build().unwrap();
        assert_eq!(generator.speculation().effective, [method]);
    }
}

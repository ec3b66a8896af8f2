//! How supervised engines begin, and what they answer besides texts.

use crate::hostile::{Deed, Plan};
use crate::roles;
use crate::support::{builder, context, drafted, greedy, load, read, same, serving, submit, undisturbed};
use llama_spec::isolate::Program;
use llama_spec::spec::{Method, SpecConfig};
use llama_spec::supervise::{Question, RefusalKind, Reply, State, Supervisor};
use llama_spec_tests::zoo;
use pollster::block_on;

pub(crate) fn a_first_load_tells_what_it_found() {
    let mut load = drafted(2);
    load.probe = true;
    load.speculation = None;
    let supervisor = Supervisor::builder(load.clone()).start().unwrap();
    let begun = supervisor.status();
    assert!(matches!(begun.state, State::Starting { .. }), "{begun:?}");
    let info = block_on(supervisor.first_load()).unwrap();
    assert_eq!((info.slots, info.context), (2, context(2).length_per_slot));
    assert!(info.probe.is_some());
    let status = supervisor.status();
    assert_eq!((status.state, status.requested), (State::Ready, Some(load)));
    assert!(status.speculation.effective.contains(&Method::DraftSimple), "{}", status.speculation);
    assert!(status.last_decode.is_some_and(|last| last.ok));
    assert_eq!(block_on(supervisor.first_load()).unwrap(), info);
}

pub(crate) fn what_cannot_be_loaded_is_told() {
    let mut other_vocabulary = drafted(1);
    other_vocabulary.draft = Some(zoo::file("draft-other-vocabulary"));
    other_vocabulary.speculation = Some(SpecConfig::new([Method::DraftSimple]).fixed_length(4));
    let mut no_slots = load("target", 1);
    no_slots.context.slots = 0;
    let mut missing = load("target", 1);
    missing.model = "no-such-folder/no-such-model.gguf".into();
    let loads = [(other_vocabulary, RefusalKind::Pair), (missing, RefusalKind::File), (no_slots, RefusalKind::Setting)];
    for (load, kind) in loads {
        let supervisor = Supervisor::builder(load).start().unwrap();
        let refused = block_on(supervisor.first_load()).unwrap_err();
        assert_eq!(refused.kind, kind, "{refused}");
        let State::Failed { reason } = supervisor.status().state else { panic!("{:?}", supervisor.status()) };
        assert!(!reason.contains(".gguf"), "{reason}");
    }
}

pub(crate) fn a_program_without_the_hook_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = roles::under_the_name("forgets-the-hook", folder.path());
    for (program, word) in
        [(path, "isolate::hook()"), ("no-such-folder/no-such-program".into(), "could not be started")]
    {
        let supervisor = builder(load("target", 1)).program(Program::At(program)).start().unwrap();
        let refused = block_on(supervisor.first_load()).unwrap_err();
        assert!(refused.message.contains(word), "{refused}");
    }
}

pub(crate) fn an_engine_in_this_process_serves() {
    let supervisor = serving(builder(drafted(2)).in_process());
    let requests = [greedy("abc", 50), greedy("The quick", 30)];
    same(&read(submit(&supervisor, &requests), |_, _| ()), &undisturbed("recall", &requests));
    assert_eq!(supervisor.status().process, None);
    // The hook's drafter is part of this one as well, and nothing protects from what ends the process: only slow here.
    let plan = Plan { deed: Deed::Slow, step: 1, workers: 1 };
    block_on(supervisor.load(plan.put_into(load("target", 1)), Default::default())).unwrap();
    let seen = read(submit(&supervisor, &[greedy("abc", 5)]), |_, _| ());
    assert_eq!(seen[0].output.text, "defgh");
    assert_eq!(seen[0].speculation.as_ref().unwrap().own_drafters, 1);
    block_on(supervisor.unload(Default::default())).unwrap();
}

pub(crate) fn questions_are_answered() {
    let supervisor = serving(builder(load("target", 1)));
    let question = Question::Tokenize { text: "abc".into(), add_special: false, parse_special: false };
    let Ok(Reply::Tokens(tokens)) = block_on(supervisor.ask(question)) else { panic!("no tokens") };
    let bytes: Vec<u8> = tokens.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
    assert_eq!(bytes, b"abc");
    let question = Question::Detokenize { tokens: tokens.iter().map(|(token, _)| *token).collect() };
    assert_eq!(block_on(supervisor.ask(question)), Ok(Reply::Text("abc".into())));
}

//! Models, vocabularies, contexts and memories: what they give, and what they refuse.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use llama_spec::options::{GpuLayers, KvType, MetadataValue, Pooling, SplitMode};
use llama_spec::{Batch, Context, ContextOptions, DecodeError, Error, Model, Rollback, Slot, Token};
use llama_spec_tests::zoo::{self, Llama};

fn target() -> Model {
    Model::load(zoo::file("target")).unwrap()
}

fn options() -> ContextOptions {
    ContextOptions::default().length_per_slot(256).threads(1)
}

fn argmax(logits: &[f32]) -> Token {
    let best = logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap();
    Token::new(best.0 as i32)
}

/// Decodes `tokens` from `position` on and gives the most probable next token.
fn next(context: &mut Context, tokens: &[Token], position: u32, slot: Slot) -> Token {
    let mut batch = Batch::new();
    batch.push_prompt(tokens, position, slot);
    context.decode(&batch).unwrap();
    argmax(context.logits(batch.len() - 1).unwrap())
}

#[test]
fn every_broken_file_is_a_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    for broken in llama_spec_tests::broken::all(folder.path()).unwrap() {
        let error = Model::load(&broken.path).expect_err(broken.name);
        let text = error.to_string();
        // The part that is missing is named and not the first one.
        let folder = if broken.name == "directory" { &broken.path } else { broken.path.parent().unwrap() };
        assert!(text.contains(&*folder.to_string_lossy()), "{}: {text}", broken.name);
        assert!(!text.contains("gave no reason"), "{}: {text}", broken.name);
        match broken.name {
            "missing" | "directory" | "split-part-missing" => assert!(matches!(error, Error::File { .. }), "{error:?}"),
            "empty" | "text" | "random" => assert!(matches!(error, Error::NotGguf { .. }), "{error:?}"),
            _ => assert!(matches!(error, Error::BrokenFile { .. }), "{error:?}"),
        }
    }
}

#[test]
fn a_split_model_is_one_model() {
    let whole = Llama::target(1);
    let parts = whole.cached_split(3).unwrap();
    let by_name = Model::load(&parts[0]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let renamed: Vec<_> = parts
        .iter()
        .enumerate()
        .map(|(index, part)| {
            let path = folder.path().join(format!("part {index}.gguf"));
            std::fs::copy(part, &path).unwrap();
            path
        })
        .collect();
    let by_list = Model::builder(&renamed[0]).parts(&renamed).load().unwrap();
    let prompt = target().vocab().tokenize("abc").unwrap();
    for model in [by_name, by_list] {
        assert_eq!(model.size_bytes(), target().size_bytes());
        let mut context = model.context(&options()).unwrap();
        let ids: Vec<u32> = prompt.iter().map(|token| token.id() as u32).collect();
        assert_eq!(next(&mut context, &prompt, 0, Slot::FIRST).id() as u32, whole.next(&ids));
    }
}

#[test]
fn facts_of_a_model_are_those_of_its_file() {
    let (model, description) = (target(), Llama::target(1));
    assert_eq!(model.architecture(), "llama");
    assert_eq!(model.layers(), description.shape().layers);
    assert_eq!(model.width(), description.shape().width);
    assert_eq!(model.trained_context(), description.shape().context_length);
    assert_eq!(model.vocab().len(), description.vocabulary().size());
    assert!(model.has_decoder() && !model.has_encoder() && !model.is_recurrent() && !model.is_hybrid());
    assert_eq!((model.mtp_layers(), model.target_layers().unwrap()), (0, vec![]));
    assert!(model.metadata_entries().any(|(key, value)| key == "general.architecture" && value == "llama"));
    assert_eq!(model.metadata("no.such.key"), None);
    assert_eq!(model.chat_template(None), None);
    assert!(Model::load(zoo::file("chat")).unwrap().chat_template(None).is_some());
}

#[test]
fn metadata_can_be_overridden() {
    let path = zoo::file("target");
    let load = |key: &str, value| Model::builder(&path).metadata_override(key, value).load();
    let model = load("llama.context_length", MetadataValue::Int(77)).unwrap();
    assert_eq!(model.trained_context(), 77);
    let long = "x".repeat(128);
    assert!(matches!(load(&long, MetadataValue::Bool(true)), Err(Error::Setting { .. })));
    assert!(matches!(load("general.name", MetadataValue::Text(long)), Err(Error::Setting { .. })));
}

#[test]
fn devices_that_do_not_exist_are_named() {
    let path = zoo::file("target");
    let unknown = Model::builder(&path).devices(["CUDA7"]).load().unwrap_err();
    assert!(matches!(&unknown, Error::Device { asked, .. } if asked == "CUDA7"), "{unknown:?}");
    let pattern = Model::builder(&path).tensor_device("ffn", "CUDA7").load().unwrap_err();
    assert!(matches!(&pattern, Error::Device { .. }), "{pattern:?}");
    if !llama_spec::Device::all().unwrap().iter().any(llama_spec::Device::is_gpu) {
        for layers in [GpuLayers::All, GpuLayers::Count(1)] {
            let error = Model::builder(&path).gpu_layers(layers).load().unwrap_err();
            assert!(matches!(error, Error::Device { .. }), "{error:?}");
        }
        Model::builder(&path).gpu_layers(GpuLayers::Count(0)).load().unwrap();
        let main = Model::builder(&path).split_mode(SplitMode::None).main_gpu(3).load().unwrap_err();
        assert!(matches!(main, Error::Device { .. }), "{main:?}");
    }
    Model::builder(&path).tensor_device(r"blk\.0\..*", "CPU").load().unwrap();
    let shares = Model::builder(&path).tensor_split([1.0, f32::NAN]).load().unwrap_err();
    assert!(matches!(shares, Error::Setting { setting: "tensor_split", .. }), "{shares:?}");
}

#[test]
fn text_survives_the_vocabulary() {
    let model = target();
    let vocab = model.vocab();
    for text in ["", "abc", "caf\u{e9} \u{1f600}\n\t", "a\0b"] {
        let tokens = vocab.tokenize_plain(text).unwrap();
        let bytes: Vec<u8> = tokens.iter().flat_map(|token| vocab.bytes(*token).unwrap()).collect();
        assert_eq!(bytes, text.as_bytes());
    }
    // Not UTF-8: an answer or an error, never more.
    let _ = vocab.tokenize_plain(b"\xff\xfe\x80");
    let outside = Token::new(vocab.len() as i32);
    assert!(matches!(vocab.bytes(outside), Err(Error::Setting { .. })));
    assert!(matches!(vocab.raw_text(Token::new(-1)), Err(Error::Setting { .. })));
    assert!(!vocab.is_end_of_generation(outside) && !vocab.is_control(Token::new(i32::MIN)));
    assert!(vocab.is_end_of_generation(vocab.eos().unwrap()));
}

#[test]
fn options_out_of_range_are_named() {
    let model = target();
    let refused = |options: ContextOptions| match model.context(&options) {
        Err(Error::Setting { setting, .. }) => setting,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(options().slots(0)), "slots");
    assert_eq!(refused(options().slots(257)), "slots");
    assert_eq!(refused(options().batch(0)), "batch");
    assert_eq!(refused(options().micro_batch(0)), "micro_batch");
    assert_eq!(refused(options().threads(0)), "threads");
    assert_eq!(refused(options().length_per_slot(u32::MAX).slots(8)), "length_per_slot");
    assert_eq!(refused(options().snapshots(511).micro_batch(512)), "snapshots");
    assert_eq!(refused(options().rope_frequency_base(Some(f32::NAN))), "rope_frequency_base");
    let quantized =
        options().kv_types(KvType::Q8_0, KvType::Q8_0).flash_attention(llama_spec::options::FlashAttention::Off);
    assert_eq!(refused(quantized), "kv_type_v");
}

#[test]
fn slots_do_not_see_each_other() {
    let (model, description) = (target(), Llama::target(1));
    let mut context = model.context(&options().slots(3)).unwrap();
    let prompts: Vec<_> =
        ["abc", "hello world", "x"].iter().map(|text| model.vocab().tokenize(text).unwrap()).collect();
    let mut batch = Batch::new();
    let ends: Vec<usize> = (0..3)
        .map(|slot| {
            batch.push_prompt(&prompts[slot], 0, Slot::new(slot as u32));
            batch.len() - 1
        })
        .collect();
    context.decode(&batch).unwrap();
    for (prompt, end) in prompts.iter().zip(ends) {
        let ids: Vec<u32> = prompt.iter().map(|token| token.id() as u32).collect();
        assert_eq!(argmax(context.logits(end).unwrap()).id() as u32, description.next(&ids));
    }
    assert_eq!(context.memory().range(Slot::new(1)).unwrap(), Some((0, prompts[1].len() as u32 - 1)));
    context.memory().keep(Slot::new(1)).unwrap();
    assert_eq!(context.memory().range(Slot::FIRST).unwrap(), None);
    context.memory().copy(Slot::new(1), Slot::FIRST).unwrap();
    assert_eq!(context.memory().range(Slot::FIRST).unwrap(), Some((0, prompts[1].len() as u32 - 1)));
    assert!(matches!(context.memory().range(Slot::new(3)), Err(Error::Setting { .. })));
}

#[test]
fn wrong_batches_are_refused_and_change_nothing() {
    let model = target();
    let mut context = model.context(&options().batch(32).micro_batch(32)).unwrap();
    let a = model.vocab().tokenize_plain("a").unwrap()[0];
    let decode = |context: &mut Context, entries: &[(i32, u32, u32)]| {
        let mut batch = Batch::new();
        entries.iter().for_each(|(token, position, slot)| {
            batch.push(Token::new(*token), *position, Slot::new(*slot), true);
        });
        context.decode(&batch)
    };
    let refused =
        |result: Result<(), DecodeError>| assert!(matches!(result, Err(DecodeError::Refused { .. })), "{result:?}");
    refused(decode(&mut context, &[]));
    refused(decode(&mut context, &[(-1, 0, 0)]));
    refused(decode(&mut context, &[(model.vocab().len() as i32, 0, 0)]));
    refused(decode(&mut context, &[(a.id(), u32::MAX, 0)]));
    refused(decode(&mut context, &[(a.id(), 0, 1)]));
    refused(decode(&mut context, &vec![(a.id(), 0, 0); 33]));
    assert!(context.logits(0).is_err());
    decode(&mut context, &[(a.id(), 0, 0), (a.id(), 1, 0)]).unwrap();
    assert!(context.logits(1).is_ok() && context.logits(2).is_err());
    // A gap and a repetition.
    refused(decode(&mut context, &[(a.id(), 7, 0)]));
    assert_eq!(context.memory().range(Slot::FIRST).unwrap(), Some((0, 1)));
    decode(&mut context, &[(a.id(), 2, 0)]).unwrap();
}

#[test]
fn a_full_context_says_so_and_keeps_what_it_has() {
    let model = target();
    let mut context = model.context(&options()).unwrap();
    let a = model.vocab().tokenize_plain("a").unwrap()[0];
    let length = context.length_per_slot();
    let mut batch = Batch::new();
    batch.push_prompt(&vec![a; length as usize], 0, Slot::FIRST);
    context.decode(&batch).unwrap();
    batch.clear();
    batch.push(a, length, Slot::FIRST, true);
    assert!(matches!(context.decode(&batch), Err(DecodeError::NoRoom { entries: 1 })));
    assert_eq!(context.memory().range(Slot::FIRST).unwrap(), Some((0, length - 1)));
    context.memory().remove(Slot::FIRST, 10..).unwrap();
    assert_eq!(next(&mut context, &[a], 10, Slot::FIRST).id() as u32, Llama::target(1).next(&[a.id() as u32; 11]));
}

#[test]
fn removed_tokens_leave_no_trace() {
    let (model, description) = (target(), Llama::target(2).with_recall());
    let recall = Model::load(description.cached().unwrap()).unwrap();
    drop(model);
    let mut context = recall.context(&options()).unwrap();
    assert_eq!(context.probe_rollback().unwrap(), Rollback::Partial);
    let (kept, wrong, right) = ("The quick", " red hen!", " brown fox");
    let tokens = |text: &str| recall.vocab().tokenize_plain(text).unwrap();
    let straight = {
        let mut context = recall.context(&options()).unwrap();
        next(&mut context, &tokens(&format!("{kept}{right}")), 0, Slot::FIRST);
        context.logits(kept.len() + right.len() - 1).unwrap().to_vec()
    };
    next(&mut context, &tokens(kept), 0, Slot::FIRST);
    next(&mut context, &tokens(wrong), kept.len() as u32, Slot::FIRST);
    context.memory().remove(Slot::FIRST, kept.len() as u32..).unwrap();
    next(&mut context, &tokens(right), kept.len() as u32, Slot::FIRST);
    let logits = context.logits(right.len() - 1).unwrap();
    let worst = logits.iter().zip(&straight).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst < 1e-3, "logits differ by {worst}");
}

#[test]
fn a_saved_slot_goes_on_in_another_context() {
    let description = Llama::target(2).with_recall();
    let model = Model::load(description.cached().unwrap()).unwrap();
    let prompt = model.vocab().tokenize("The quick brown fox").unwrap();
    let ids: Vec<u32> = prompt.iter().map(|token| token.id() as u32).collect();
    let expected = description.continuation(&ids, 20);
    let mut first = model.context(&options().slots(2)).unwrap();
    let token = next(&mut first, &prompt, 0, Slot::FIRST);
    let state = first.memory().save(Slot::FIRST).unwrap();
    let mut second = model.context(&options().slots(2)).unwrap();
    second.memory().restore(Slot::new(1), &state).unwrap();
    let (mut got, mut last) = (vec![token.id() as u32], token);
    for position in prompt.len() as u32..prompt.len() as u32 + 19 {
        last = next(&mut second, &[last], position, Slot::new(1));
        got.push(last.id() as u32);
    }
    assert_eq!(got, expected);
    for broken in [&state[..0], &state[..state.len() / 2], b"nonsense", &vec![0xff; state.len()][..]] {
        assert!(matches!(second.memory().restore(Slot::FIRST, broken), Err(Error::State { .. })));
        assert_eq!(second.memory().range(Slot::FIRST).unwrap(), None);
    }
    assert_eq!(next(&mut second, &prompt, 0, Slot::FIRST), token);
}

#[test]
fn embeddings_are_given_where_they_were_asked_for() {
    let model = target();
    let prompt = model.vocab().tokenize("abc").unwrap();
    let mut plain = model.context(&options()).unwrap();
    next(&mut plain, &prompt, 0, Slot::FIRST);
    assert!(matches!(plain.embeddings(0), Err(Error::Embeddings { .. })));
    let mut context = model.context(&options().embeddings(Some(Pooling::Mean))).unwrap();
    let mut batch = Batch::new();
    prompt.iter().enumerate().for_each(|(position, token)| {
        batch.push(*token, position as u32, Slot::FIRST, true);
    });
    assert!(context.slot_embeddings(Slot::FIRST).is_err(), "nothing was decoded yet");
    context.decode(&batch).unwrap();
    let embedding = context.slot_embeddings(Slot::FIRST).unwrap();
    assert_eq!(embedding.len() as u32, model.output_width());
    assert!(embedding.iter().all(|value| value.is_finite()) && embedding.iter().any(|value| *value != 0.0));
}

#[test]
fn what_a_context_takes_is_known() {
    let model = target();
    let context = model.context(&options()).unwrap();
    let rows = context.memory_breakdown().unwrap();
    let held: u64 = rows.iter().map(|(_, _, memory, _)| memory).sum();
    // K and V of every layer, in F16.
    let shape = Llama::target(1).shape().clone();
    let row = shape.width / shape.heads * shape.kv_heads;
    assert_eq!(held, u64::from(shape.layers * 2 * context.length_per_slot() * row * 2));
}

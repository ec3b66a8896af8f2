//! The files and oracles of the zoo's models.

use std::{collections::HashSet, fs, path::PathBuf};

use super::*;
use crate::{
    gguf::{TensorType, reader::Parsed},
    vocab::{Kind, Special, Vocabulary},
};

fn written(model: &Llama) -> Parsed {
    Parsed::open(&model.cached().unwrap())
}

/// The largest entry and the margin to the second.
fn best(scores: &[f32]) -> (usize, f32) {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    (order[0], scores[order[0]] - scores[order[1]])
}

#[test]
fn without_layers_the_successor_wins_by_far() {
    for model in [Llama::target(1), Llama::target(2), Llama::target(1).draft(0.5), Llama::target(1).ending_after(b'q')]
    {
        let file = written(&model);
        let width = model.shape().width as usize;
        let (embeddings, heads) = (file.floats("token_embd.weight"), file.floats("output.weight"));
        for (token, embedding) in embeddings.chunks(width).enumerate() {
            let logits: Vec<f32> =
                heads.chunks(width).map(|head| head.iter().zip(embedding).map(|(a, b)| a * b).sum()).collect();
            let (winner, margin) = best(&logits);
            assert_eq!(winner as u32, model.successor(token as u32), "token {token} of {model:?}");
            assert!(margin > 6.0, "token {token}: margin {margin}");
        }
    }
}

#[test]
fn the_head_of_recall_finds_its_position() {
    let model = Llama::target(1).with_recall();
    let file = written(&model);
    let width = model.shape().width as usize;
    let head_width = width / model.shape().heads as usize;
    let base: f32 = file.metadata["llama.rope.freq_base"].parse().unwrap();
    let tokens =
        [vec![model.vocabulary().special(Special::Bos)], model.vocabulary().tokenize(&model.cycle()[..70])].concat();

    // The first head of the first layer by the definition of attention, with the norm of the embedding
    let embeddings = file.floats("token_embd.weight");
    let project = |matrix: &str, token: u32| -> Vec<f32> {
        let embedding = &embeddings[token as usize * width..][..width];
        let norm = (embedding.iter().map(|x| x * x).sum::<f32>() / width as f32).sqrt();
        let rows = file.floats(&format!("blk.0.{matrix}.weight"));
        rows.chunks(width)
            .take(head_width)
            .map(|row| row.iter().zip(embedding).map(|(a, b)| a * b / norm).sum())
            .collect()
    };
    let rotated = |matrix: &str, position: usize| -> Vec<f32> {
        let mut vector = project(matrix, tokens[position]);
        for (pair, xy) in vector.chunks_exact_mut(2).enumerate() {
            let angle = position as f32 * base.powf(-2.0 * pair as f32 / head_width as f32);
            let (sin, cos) = angle.sin_cos();
            (xy[0], xy[1]) = (xy[0] * cos - xy[1] * sin, xy[0] * sin + xy[1] * cos);
        }
        vector
    };
    let keys: Vec<Vec<f32>> = (0..tokens.len()).map(|position| rotated("attn_k", position)).collect();
    for last in [0, 1, 5, 20, 28, 29, 40, 70] {
        let query = rotated("attn_q", last);
        let scores: Vec<f32> = keys[..=last]
            .iter()
            .map(|key| key.iter().zip(&query).map(|(a, b)| a * b).sum::<f32>() / (head_width as f32).sqrt())
            .collect();
        let recall = model.recall().unwrap();
        if last == 0 {
            assert_eq!(recall.place(&tokens[..1]), 0);
            continue;
        }
        let (found, margin) = best(&scores);
        assert_eq!(found, recall.place(&tokens[..=last]), "after {last} tokens");
        assert!(margin > 10.0, "after {last} tokens: margin {margin} in the exponent");
        let read = project("attn_v", tokens[found])[0];
        assert_eq!(read.round() as i32, super::recall::sign(model.vocabulary().byte(tokens[found])));
    }
}

#[test]
fn files_are_small_and_equal_for_equal_descriptions() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = |model: &Llama| {
        let path = dir.path().join("model.gguf");
        model.write(&path).unwrap();
        fs::read(path).unwrap()
    };
    let target = bytes(&Llama::target(1));
    assert!(target.len() < 5_000_000, "{}", target.len());
    assert!(target == bytes(&Llama::target(1)));
    assert!(target == fs::read(Llama::target(1).cached().unwrap()).unwrap());
    assert!(target != bytes(&Llama::target(2)));
    assert!(target != bytes(&Llama::target(1).with_noise(0.2)));
}

#[test]
fn a_file_states_what_was_described() {
    let model = Llama::target(1).with_weights(TensorType::F16).with_chat_template(CHAT_TEMPLATE);
    let file = written(&model);
    for (key, value) in [
        ("general.architecture", "llama"),
        ("llama.block_count", "3"),
        ("llama.embedding_length", "128"),
        ("llama.attention.head_count", "4"),
        ("llama.attention.head_count_kv", "2"),
        ("llama.vocab_size", "261"),
        ("tokenizer.ggml.bos_token_id", "256"),
        ("tokenizer.ggml.add_bos_token", "true"),
        ("tokenizer.chat_template", CHAT_TEMPLATE),
    ] {
        assert_eq!(file.metadata[key], value, "{key}");
    }
    for tensor in &file.tensors {
        assert_eq!(tensor.kind == 1, tensor.shape.len() == 2, "{}: norms are F32, matrices F16", tensor.name);
    }
    assert_eq!(file.tensors.len(), 3 + 3 * 9);
}

#[test]
fn the_continuation_runs_through_the_cycle_and_ends_where_told() {
    let model = Llama::target(1);
    let vocabulary = model.vocabulary();
    let text = model.continuation(&vocabulary.tokenize("x"), 162);
    assert_eq!(text.len(), 162);
    assert_eq!(vocabulary.bytes(&text[..4]), b"yz,A");
    assert_eq!(text[..80], text[80..160]);
    assert_eq!(text[..80].iter().collect::<HashSet<_>>().len(), 80);

    let ending = Llama::target(1).ending_after(b'.');
    let text = ending.continuation(&vocabulary.tokenize("Y"), 100);
    assert_eq!(text, [vocabulary.tokenize("Z."), vec![vocabulary.special(Special::MessageEnd)]].concat());

    // Characters of more than one byte, a token each byte
    let unicode = Llama::target(1).with_cycle("aé€😀");
    let text = unicode.continuation(&vocabulary.tokenize("a"), 20);
    assert_eq!(String::from_utf8(vocabulary.bytes(&text)).unwrap(), "é€😀aé€😀a");
}

#[test]
fn other_vocabularies_say_the_same() {
    let target = Llama::target(1);
    let said = |model: &Llama| {
        let prompt = model.vocabulary().tokenize("Hello\n");
        model.vocabulary().bytes(&model.continuation(&prompt, 100))
    };
    let expected = said(&target);
    assert_eq!(said(&target.other_vocabulary()), expected);
    assert_eq!(said(&target.other_tokenizer()), expected);
    assert_ne!(target.other_vocabulary().successor(97), target.successor(97));
}

#[test]
fn the_order_of_shape_and_recall_does_not_matter() {
    let shape = Shape { width: 256, heads: 4, ..Llama::target(1).shape().clone() };
    let model = Llama::target(1).with_shape(shape.clone()).with_recall();
    assert_eq!(Llama::target(1).with_recall().with_shape(shape), model);
    assert_ne!(Llama::target(1).with_recall().gguf().file_size(), model.gguf().file_size());
}

#[test]
fn recalled_text_is_long_and_depends_on_what_came_earlier() {
    let model = Llama::target(1).with_recall();
    let prompt = model.vocabulary().tokenize("The beginning of a text, with 28 tokens and more.");
    let text = model.continuation(&prompt, 4000);
    // No window of 40 tokens comes twice, and every character is used
    assert_eq!(text.windows(40).collect::<HashSet<_>>().len(), text.len() - 39);
    assert_eq!(text.iter().collect::<HashSet<_>>().len(), 80);
    let changes = (0..prompt.len())
        .filter(|&at| {
            let mut other = prompt.clone();
            other[at] = model.vocabulary().token(b'#');
            model.continuation(&other, 60) != text[..60]
        })
        .count();
    assert!((8..28).contains(&changes), "{changes} changes in the last 28 tokens of the prompt change the text");
}

#[test]
fn drafts_agree_by_their_acceptance() {
    let target = Llama::target(1);
    let prompt = target.vocabulary().tokenize("abc");
    for acceptance in [0.0, 0.5, 0.8, 0.95, 1.0] {
        let draft = target.draft(acceptance);
        assert_eq!(draft.acceptance(), acceptance);
        assert_eq!(target.agreement(&draft, &prompt, 160), acceptance);
    }
    let recall = Llama::target(1).with_recall();
    for acceptance in [0.5, 0.8, 0.95] {
        let agreement = recall.agreement(&recall.draft(acceptance), &prompt, 4000);
        assert!((agreement - acceptance).abs() < 0.03, "{agreement} for {acceptance}");
    }
}

#[test]
fn rounds_are_those_of_speculative_decoding() {
    let target = Llama::target(1).with_cycle("abcdefgh");
    let prompt = target.vocabulary().tokenize("a");
    // A perfect draft: one token from the prompt, then rounds of three and one of the target's own
    let rounds = target.speculate(&target.draft(1.0), &prompt, 9, 3);
    assert_eq!(rounds, [Round { drafted: 3, accepted: 3 }; 2]);
    // A useless draft
    let rounds = target.speculate(&target.draft(0.0), &prompt, 9, 3);
    assert_eq!(rounds, [Round { drafted: 3, accepted: 0 }; 8]);
    assert_eq!(Acceptance::of(&rounds), Acceptance { drafted: 24, accepted: 0, tested: 8 });

    // The sum of what the rounds yield is the text, whatever the draft
    let target = Llama::target(1);
    for (acceptance, length) in [(0.5, 1), (0.8, 5), (0.95, 16)] {
        let rounds = target.speculate(&target.draft(acceptance), &prompt, 2000, length);
        let yielded: usize = rounds.iter().map(|round| round.accepted + 1).sum();
        assert!((1999..1999 + length + 1).contains(&yielded), "{yielded}");
        let counts = Acceptance::of(&rounds);
        assert!(counts.accepted < counts.tested && counts.tested <= counts.drafted);
        assert!((counts.rate() - acceptance).abs() < 0.05, "{counts:?}");
    }
}

#[test]
fn rounds_stop_at_the_end_of_the_text() {
    let target = Llama::target(1).with_cycle("abcdefgh").ending_after(b'e');
    let prompt = target.vocabulary().tokenize("a");
    // b, then c d e and the end by the target
    assert_eq!(target.speculate(&target.draft(1.0), &prompt, 50, 3), [Round { drafted: 3, accepted: 3 }]);
    // b, then c d e and the end by the draft
    assert_eq!(target.speculate(&target.draft(1.0), &prompt, 50, 8), [Round { drafted: 4, accepted: 4 }]);
}

#[test]
fn cached_files_have_one_path_a_description() {
    let target = Llama::target(1);
    let path = target.cached().unwrap();
    assert_eq!(path, Llama::target(1).cached().unwrap());
    let others = [
        Llama::target(2),
        target.clone().with_recall(),
        target.draft(0.5),
        target.draft(0.8),
        target.other_vocabulary(),
        target.clone().with_vocabulary(Vocabulary::new(Kind::ByteLevel).with_bos_added(false)),
    ];
    let paths: HashSet<PathBuf> = others.iter().map(|model| model.cached().unwrap()).chain([path]).collect();
    assert_eq!(paths.len(), 7);

    let parts = target.cached_split(3).unwrap();
    assert_eq!(parts.len(), 3);
    let tensors: usize = parts.iter().map(|part| Parsed::open(part).tensors.len()).sum();
    assert_eq!(tensors, target.gguf().tensors().len());
}

#[test]
fn names_are_unique_and_only_benches_are_large() {
    let all = named();
    let names: HashSet<_> = all.iter().map(|named| named.name).collect();
    assert_eq!(names.len(), all.len());
    for named in &all {
        let model = named.model();
        assert_eq!(model.label(), named.name);
        let size = model.gguf().file_size();
        let large = ["bench", "huge"].iter().any(|large| named.name.starts_with(large));
        assert_eq!(size > 5_000_000, large, "{}: {size}", named.name);
    }
}

#[test]
fn shapes_for_benches_have_the_stated_size() {
    let dir = tempfile::tempdir().unwrap();
    let (target, draft) = (bench_target(), bench_draft(0.8));
    assert_eq!(target.vocabulary(), draft.vocabulary());
    assert_eq!(target.vocabulary().size(), 32_768);
    assert_eq!(target.gguf().parameters(), 1_107_363_840);
    assert_eq!(draft.gguf().parameters(), 52_435_456);

    // The structure of the small one on a file without weights; the large one differs in numbers only.
    let path = dir.path().join("sparse.gguf");
    draft.gguf().write_sparse(&path).unwrap();
    let file = Parsed::open(&path);
    assert_eq!(file.metadata["llama.block_count"], "6");
    assert_eq!(fs::metadata(&path).unwrap().len(), draft.gguf().file_size());
}

#[test]
fn the_huge_file_is_huge_and_takes_little_room() {
    let huge = named().into_iter().find(|named| named.name == "huge").unwrap().model();
    let path = huge.cached().unwrap();
    let size = fs::metadata(&path).unwrap().len();
    assert!((8_000_000_000..8_600_000_000).contains(&size), "{size}");
    assert_eq!(size, huge.gguf().file_size());
    #[cfg(target_os = "linux")]
    {
        let blocks = std::os::unix::fs::MetadataExt::blocks(&fs::metadata(&path).unwrap());
        assert!(blocks * 512 < 50_000_000, "{blocks} blocks");
    }
}

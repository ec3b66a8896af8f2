//! Tokenizers, their defaults and what is wrong with them.

use super::made::{VOCABULARY, llama};
use super::*;
use crate::gguf::made::Raw;
use Outcome::{Aborts, Refused};

fn summary(made: &Made) -> TokenizerSummary {
    describe(made).tokenizer.unwrap()
}

#[test]
fn flags_depend_on_the_tokenizer_unless_the_file_says_them() {
    // model, pre-tokenizer, add_bos, add_eos, add_sep
    let cases = [
        ("gpt2", "default", false, false, false),
        ("gpt2", "qwen2", false, false, false),
        ("gpt2", "llama-bpe", true, false, false),
        ("gpt2", "tekken", true, false, false),
        ("gpt2", "roberta-bpe", false, false, true),
        ("gpt2", "gemma4", true, false, false),
        ("llama", "default", true, false, false),
        ("bert", "anything", true, false, true),
        ("t5", "anything", false, true, false),
        ("rwkv", "anything", false, false, false),
        ("gemma4", "anything", true, false, false),
        ("plamo2", "anything", false, false, false),
    ];
    for (model, pre, bos, eos, sep) in cases {
        let made = llama().set("tokenizer.ggml.model", model).set("tokenizer.ggml.pre", pre);
        let found = summary(&made);
        assert_eq!((found.add_bos, found.add_eos, found.add_sep), (bos, eos, sep), "{model} {pre}");
        assert_eq!(defects(&made), [], "{model} {pre}");
        let said = made.set("tokenizer.ggml.add_bos_token", !bos).set("tokenizer.ggml.add_eos_token", !eos);
        let gemma4 = "gemma4" == model || "gemma4" == pre;
        assert_eq!((summary(&said).add_bos, summary(&said).add_eos), (!bos || gemma4, !eos), "{model} {pre}");
    }
}

#[test]
fn special_tokens_have_defaults_and_must_be_in_the_vocabulary() {
    let bare = llama().without("tokenizer.ggml.bos_token_id").without("tokenizer.ggml.eos_token_id");
    assert_eq!((summary(&bare).bos, summary(&bare).eos), (Some(11), Some(11)));
    let spm = bare.clone().set("tokenizer.ggml.model", "llama");
    assert_eq!((summary(&spm).bos, summary(&spm).eos, summary(&spm).unk), (Some(1), Some(2), Some(0)));
    // 101 and others of its defaults are not among 40 tokens.
    let wpm = bare.set("tokenizer.ggml.model", "bert");
    assert_eq!((summary(&wpm).bos, summary(&wpm).pad, summary(&wpm).mask), (None, Some(0), None));
    let outside = llama().set("tokenizer.ggml.bos_token_id", VOCABULARY as u32);
    assert_eq!(summary(&outside).bos, Some(11));
    let given = llama().set("tokenizer.ggml.mask_token_id", 39u32).set("tokenizer.ggml.eot_token_id", 5u32);
    assert_eq!((summary(&given).mask, describe(&given).mask_token, summary(&given).eot), (Some(39), Some(39), Some(5)));
}

#[test]
fn what_llama_cpp_refuses() {
    let only = |made: Made, key: &str, outcome: Outcome| {
        let found = defects(&made);
        assert!(found.contains(&(key.to_owned(), outcome)), "{key} {outcome:?} is not among {found:?}");
    };
    for key in ["model", "tokens", "merges"] {
        let key = format!("tokenizer.ggml.{key}");
        only(llama().without(&key), &key, Refused);
        only(llama().set(&key, 1u32), &key, Refused);
    }
    only(llama().set("tokenizer.ggml.model", "klingon"), "tokenizer.ggml.model", Refused);
    only(llama().set("tokenizer.ggml.pre", "klingon"), "tokenizer.ggml.pre", Refused);
    only(llama().set("tokenizer.ggml.pre", 1u32), "tokenizer.ggml.pre", Refused);
    only(llama().set("tokenizer.ggml.token_type", &[1i32; 3][..]), "tokenizer.ggml.token_type", Refused);
    only(llama().set("tokenizer.ggml.token_type", &[1u32; 40][..]), "tokenizer.ggml.token_type", Refused);
    only(llama().set("tokenizer.ggml.scores", &[1f32; 39][..]), "tokenizer.ggml.scores", Refused);
    only(llama().set("tokenizer.ggml.bos_token_id", 1i32), "tokenizer.ggml.bos_token_id", Refused);
    only(llama().set("tokenizer.ggml.add_bos_token", 1u32), "tokenizer.ggml.add_bos_token", Refused);
    only(
        llama().set("tokenizer.ggml.metaspace.prepend_scheme", "always"),
        "tokenizer.ggml.metaspace.prepend_scheme",
        Refused,
    );
    let map = |bytes: &[u8]| {
        llama().set("tokenizer.ggml.model", "t5").set("tokenizer.ggml.precompiled_charsmap", Raw::from(bytes))
    };
    only(map(&[4, 0, 0]), "tokenizer.ggml.precompiled_charsmap", Refused);
    only(map(&[4, 0, 0, 0, 1, 1, 1, 1]), "tokenizer.ggml.precompiled_charsmap", Refused);
    assert_eq!(defects(&map(&[4, 0, 0, 0, 1, 1, 1, 1, 0])), []);
    assert_eq!(defects(&llama().without("tokenizer.ggml.pre")), []);
    let kimi = llama().set("tokenizer.ggml.pre", "kimi-k2").without("tokenizer.ggml.merges");
    assert_eq!(defects(&kimi), []);
}

#[test]
fn two_tokens_of_the_same_text_abort() {
    let mut texts: Vec<String> = (0..VOCABULARY).map(|id| format!("<{id}>")).collect();
    texts[31] = "<7>".into();
    let made = llama().set("tokenizer.ggml.tokens", &texts[..]);
    let found = describe(&made).defects;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].outcome, Aborts);
    assert_eq!(found[0].why, "the tokens 7 and 31 have the same text \"<7>\"");
    // A text ends at its first zero byte, and empty texts get names of their own.
    texts[31] = "<7>\0more".into();
    assert_eq!(describe(&llama().set("tokenizer.ggml.tokens", &texts[..])).defects.len(), 1);
    (texts[30], texts[31]) = (String::new(), String::new());
    assert_eq!(describe(&llama().set("tokenizer.ggml.tokens", &texts[..])).defects, []);
}

#[test]
fn texts_are_compared() {
    let with = |change: Option<(usize, &str)>, size: u64| {
        let mut texts: Vec<String> = (0..size).map(|id| format!("<{id}>")).collect();
        if let Some((id, text)) = change {
            texts[id] = text.into();
        }
        open(&llama().set("tokenizer.ggml.tokens", &texts[..])).unwrap()
    };
    let (same, other, longer) = (with(None, 40), with(Some((9, "nine")), 40), with(None, 44));
    let tokenizer = same.tokenizer().unwrap();
    assert_eq!(tokenizer.text(39), Some(&b"<39>"[..]));
    assert_eq!(tokenizer.text(40), None);
    assert_eq!(tokenizer.texts().len(), 40);
    assert_eq!(tokenizer.first_difference(other.tokenizer().unwrap(), 0), Some(9));
    assert_eq!(tokenizer.first_difference(other.tokenizer().unwrap(), 9), Some(9));
    assert_eq!(tokenizer.first_difference(other.tokenizer().unwrap(), 10), None);
    assert_eq!(tokenizer.first_difference(longer.tokenizer().unwrap(), 0), None);
}

#[test]
fn a_model_without_a_vocabulary_says_its_size() {
    let made = llama().set("tokenizer.ggml.model", "no_vocab").set("llama.vocab_size", 40u32);
    let found = summary(&made);
    assert_eq!((found.vocabulary, found.size, found.bos), (VocabularyType::None, 40, None));
    assert_eq!(defects(&made), []);
}

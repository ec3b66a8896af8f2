//! Target and draft must mean the same by a token id.

use super::super::facts::TokenDifference;
use super::{Facts, Found, Rule, Severity, Side, Stage, Test, show};
use crate::file::TokenizerSummary;

/// How many tokens the vocabularies may differ in size (SPEC_VOCAB_MAX_SIZE_DIFFERENCE).
const MAX_SIZE_DIFFERENCE: u32 = 128;

pub(super) const RULES: &[Rule] = &[
    Rule {
        code: "vocab-missing",
        about: "target and draft have vocabularies that can be compared",
        applies: "every draft that is used",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "convert the file again, with its tokenizer",
        source: "llama.cpp fails to load the file (src/llama-vocab.cpp, llama_vocab::impl::load)",
        test: Test::One(vocab_missing),
    },
    Rule {
        code: "vocab-type",
        about: "the vocabularies are of the same type",
        applies: "every draft that is used",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "take a draft with the target's tokenizer",
        source: "llama.cpp throws for draft-simple and its server goes on without speculation; for other drafts it is not \
                 compared and they guess wrong (common/speculative.cpp, common_speculative_are_compatible)",
        test: Test::One(vocab_type),
    },
    Rule {
        code: "vocab-bos",
        about: "both put the same token, or none, before a text",
        applies: "every draft that is used",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "take a draft with the target's tokenizer, or correct `tokenizer.ggml.bos_token_id` and \
               `tokenizer.ggml.add_bos_token` in one of the files",
        source: "as `vocab-type`",
        test: Test::One(vocab_bos),
    },
    Rule {
        code: "vocab-eos",
        about: "both put the same token, or none, after a text",
        applies: "every draft that is used",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "take a draft with the target's tokenizer, or correct `tokenizer.ggml.eos_token_id` and \
               `tokenizer.ggml.add_eos_token` in one of the files",
        source: "as `vocab-type`",
        test: Test::One(vocab_eos),
    },
    Rule {
        code: "vocab-size",
        about: "the vocabularies differ by at most 128 tokens in size; ids beyond the target's are masked",
        applies: "every draft that is used",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "take a draft with the target's tokenizer",
        source: "as `vocab-type`; for other drafts than plain ones llama.cpp aborts on the first id that is too large \
                 (common/common.cpp, common_batch::get_sub_batch)",
        test: Test::One(vocab_size),
    },
    Rule {
        code: "vocab-text",
        about: "every token from id 5 on has the same text in both",
        applies: "every draft that is used",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "take a draft with the target's tokenizer",
        source: "as `vocab-type`",
        test: Test::One(vocab_text),
    },
    Rule {
        code: "vocab-first-tokens",
        about: "the tokens 0 to 4 have the same texts in both",
        applies: "every draft that is used",
        severity: Severity::Wasteful,
        stage: Stage::Files,
        cure: "nothing, if these are special tokens that your texts do not have",
        source: "llama.cpp does not compare them (common/speculative.cpp, SPEC_VOCAB_CHECK_START_TOKEN_ID)",
        test: Test::One(vocab_first_tokens),
    },
    Rule {
        code: "vocab-draft-smaller",
        about: "the draft knows every token of the target",
        applies: "every draft that is used",
        severity: Severity::Wasteful,
        stage: Stage::Files,
        cure: "take a draft with the whole vocabulary if texts have such tokens",
        source: "llama.cpp aborts when such a token comes (common/common.cpp, common_batch::get_sub_batch); this library stops \
                 speculating then",
        test: Test::One(vocab_draft_smaller),
    },
    Rule {
        code: "vocab-map",
        about: "the map of a reduced vocabulary (`d2t`) has 64-bit integers, as many as the draft's head has rows, all ids of \
                the target",
        applies: "draft-eagle3, draft-dflash and draft-dspark with a reduced vocabulary",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "convert the draft again for this target",
        source: "llama.cpp aborts (src/models/eagle3.cpp and dflash.cpp, the use of d2t)",
        test: Test::One(vocab_map),
    },
];

/// Both tokenizers, if a draft is used and both are known.
fn tokenizers<'a>(facts: &Facts<'a>) -> Option<(&'a TokenizerSummary, &'a TokenizerSummary)> {
    let draft = facts.used_draft()?;
    Some((facts.target.description.tokenizer.as_ref()?, draft.description.tokenizer.as_ref()?))
}

fn vocab_missing(facts: &Facts<'_>) -> Option<Found> {
    let draft = facts.used_draft()?;
    let size = |side: Side<'_>| side.vocabulary().map_or("no vocabulary".to_owned(), |size| format!("{size} tokens"));
    let both = facts.target.vocabulary().is_some() && draft.vocabulary().is_some();
    let found = Found::new(both).target(size(facts.target)).draft(size(draft));
    Some(found.says("a vocabulary is missing or of a kind that llama.cpp does not know"))
}

fn vocab_type(facts: &Facts<'_>) -> Option<Found> {
    let (target, draft) = tokenizers(facts)?;
    let found = Found::new(target.vocabulary == draft.vocabulary).target(&target.model).draft(&draft.model);
    Some(found.says("the vocabularies are of different types"))
}

fn special(added: bool, id: Option<u32>) -> String {
    match (added, id) {
        (true, Some(id)) => format!("token {id}, added"),
        (true, None) => "added, but no such token".to_owned(),
        (false, _) => "not added".to_owned(),
    }
}

fn vocab_bos(facts: &Facts<'_>) -> Option<Found> {
    let (target, draft) = tokenizers(facts)?;
    let same = target.add_bos == draft.add_bos && (!target.add_bos || target.bos == draft.bos);
    let found = Found::new(same).target(special(target.add_bos, target.bos)).draft(special(draft.add_bos, draft.bos));
    Some(found.says("texts do not begin with the same token"))
}

fn vocab_eos(facts: &Facts<'_>) -> Option<Found> {
    let (target, draft) = tokenizers(facts)?;
    let same = target.add_eos == draft.add_eos && (!target.add_eos || target.eos == draft.eos);
    let found = Found::new(same).target(special(target.add_eos, target.eos)).draft(special(draft.add_eos, draft.eos));
    Some(found.says("texts do not end with the same token"))
}

fn vocab_size(facts: &Facts<'_>) -> Option<Found> {
    let (target, draft) = tokenizers(facts)?;
    let apart = target.size.abs_diff(draft.size);
    let found = Found::new(apart <= MAX_SIZE_DIFFERENCE).target(target.size).draft(draft.size);
    Some(found.says(format!(
        "the vocabularies differ by {apart} tokens in size, and at most {MAX_SIZE_DIFFERENCE} are allowed"
    )))
}

fn vocab_text(facts: &Facts<'_>) -> Option<Found> {
    same_texts(facts, facts.difference.as_ref(), |id| format!("the vocabularies differ from token {id} on"))
}

fn vocab_first_tokens(facts: &Facts<'_>) -> Option<Found> {
    same_texts(facts, facts.early_difference.as_ref(), |id| format!("token {id} has another text"))
}

fn same_texts(facts: &Facts<'_>, first: Option<&TokenDifference>, says: impl FnOnce(u32) -> String) -> Option<Found> {
    tokenizers(facts)?;
    let Some(TokenDifference { id, target, draft }) = first else { return Some(Found::new(true)) };
    Some(Found::new(false).target(format!("{target:?}")).draft(format!("{draft:?}")).says(says(*id)))
}

fn vocab_draft_smaller(facts: &Facts<'_>) -> Option<Found> {
    let (target, draft) = tokenizers(facts)?;
    let found = Found::new(draft.size >= target.size).target(target.size).draft(draft.size);
    Some(found.says(format!("speculation ends when a token from id {} on comes", draft.size)))
}

fn vocab_map(facts: &Facts<'_>) -> Option<Found> {
    let draft = facts.used_draft()?;
    let map = draft.description.draft_vocabulary.as_ref()?;
    // Rows are scattered into logits of the draft's own vocabulary, and the ids are then the target's.
    let size = [facts.target.vocabulary(), draft.vocabulary()].into_iter().flatten().min();
    let known = |id: i64| size.is_none_or(|size| (0..i64::from(size)).contains(&id));
    let fits = map.smallest.is_none_or(known) && map.largest.is_none_or(known);
    let complete = map.size > 0 && draft.head_rows.is_none_or(|rows| rows == map.size);
    let found = Found::new(map.kind.eq_ignore_ascii_case("i64") && complete && fits);
    let ids = format!("{} ids of type {}, {} to {}", map.size, map.kind, show(map.smallest), show(map.largest));
    Some(found.target(show(size)).draft(ids).says("the map from the draft's tokens to the target's does not fit"))
}

//! Which methods are asked for, and whether there is what they draft with.

use super::{Facts, Found, Rule, Severity, Stage, Test, fits};
use crate::spec::Method;

pub(super) const RULES: &[Rule] = &[
    Rule {
        code: "one-model-method",
        about: "at most one method drafts with a model or with heads",
        applies: "every choice of methods",
        severity: Severity::Impossible,
        stage: Stage::Settings,
        cure: "keep one of them; lookup methods can be added to it",
        source: "llama.cpp has one draft context for all of them, so the second fails or aborts (common/speculative.cpp, \
                 common_speculative_init_from_params)",
        test: Test::One(one_model_method),
    },
    Rule {
        code: "method-file",
        about: "the draft is made for the method",
        applies: "methods that draft with a model, with a draft",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "leave the method out, so that the draft's kind decides",
        source: "llama.cpp aborts, fails every request, drafts garbage or drafts nothing, as the pair may be \
                 (common/speculative.cpp, the constructors of the drafters)",
        test: Test::Many(method_file),
    },
    Rule {
        code: "draft-missing",
        about: "there is a draft for a method that needs one",
        applies: "draft-simple, draft-eagle3, draft-dflash, draft-dspark",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "give a draft, or choose lookup",
        source: "llama.cpp drops the method without a message, and throws for draft-simple (common/speculative.cpp, \
                 common_speculative_init)",
        test: Test::Many(draft_missing),
    },
    Rule {
        code: "draft-unused",
        about: "a draft that is given is used by a method",
        applies: "lookup methods with a draft",
        severity: Severity::Impossible,
        stage: Stage::Settings,
        cure: "add the method of the draft, or leave the draft out",
        source: "llama.cpp loads the draft and never asks it; a head alone crashes in a context of its own \
                 (common/speculative.cpp, common_speculative_init_from_params)",
        test: Test::One(draft_unused),
    },
    Rule {
        code: "draft-without-speculation",
        about: "a draft is given only when there is speculation",
        applies: "no method, with a draft",
        severity: Severity::Wasteful,
        stage: Stage::Settings,
        cure: "leave the draft out, or choose its method",
        source: "llama.cpp loads the draft and does not use it (common/speculative.cpp, common_speculative_init)",
        test: Test::One(draft_without_speculation),
    },
    Rule {
        code: "setting-range",
        about: "all settings are in their ranges",
        applies: "the methods chosen",
        severity: Severity::Impossible,
        stage: Stage::Settings,
        cure: "choose a value in the range",
        source: "only llama.cpp's command line checks some of them; elsewhere it aborts, throws or drafts nothing \
                 (common/arg.cpp; common/speculative.cpp; common/ngram-map.cpp)",
        test: Test::Many(setting_range),
    },
    Rule {
        code: "lookup-cache",
        about: "the files of ngram-cache can be read and are lookup caches for this vocabulary",
        applies: "ngram-cache with files",
        severity: Severity::Impossible,
        stage: Stage::Settings,
        cure: "give a file that llama-lookup-create or an earlier run wrote for this vocabulary, or none",
        source: "llama.cpp aborts (common/ngram-cache.cpp, common_ngram_cache_load)",
        test: Test::Many(lookup_cache),
    },
    Rule {
        code: "sampled-drafts",
        about: "drafts are drawn at random only by methods that can",
        applies: "probabilistic drafting",
        severity: Severity::Wasteful,
        stage: Stage::Settings,
        cure: "switch `probabilistic` off",
        source: "llama.cpp drafts greedily without a message (common/speculative.cpp, the drafters of EAGLE-3, DFlash and DSpark)",
        test: Test::One(sampled_drafts),
    },
];

fn one_model_method(facts: &Facts<'_>) -> Option<Found> {
    let names: Vec<&str> = facts.model_methods().map(Method::name).collect();
    let found = Found::new(names.len() < 2).target(if names.is_empty() { "none".into() } else { names.join(", ") });
    facts.speculates().then(|| found.says("these methods would share one draft context"))
}

fn method_file(facts: &Facts<'_>) -> Vec<Found> {
    // What is no draft at all has a rule of its own.
    let Some(draft) = facts.draft.filter(|draft| draft.description.kind.drafts()) else { return Vec::new() };
    let kind = draft.description.kind;
    let right: Vec<&str> = Method::ALL.into_iter().filter(|method| fits(*method, kind)).map(Method::name).collect();
    let judge = |method: Method| {
        let found = Found::new(fits(method, kind)).target(method).draft(kind);
        let found = found.says(format!("{method} does not draft with {kind}"));
        found.cure(format!("choose {} for this file, or leave the method out", right.join(" or ")))
    };
    facts.model_methods().map(judge).collect()
}

fn draft_missing(facts: &Facts<'_>) -> Vec<Found> {
    let needs = facts.model_methods().filter(|method| *method != Method::DraftMtp);
    let judge = |method: Method| {
        let found = Found::new(facts.draft.is_some()).target(method);
        let found = found.says(format!("{method} needs a draft, and none was given"));
        match facts.target.description.mtp_heads {
            true => found.cure("give a draft, or choose draft-mtp: the target has heads of its own"),
            false => found,
        }
    };
    needs.map(judge).collect()
}

fn draft_unused(facts: &Facts<'_>) -> Option<Found> {
    let draft = facts.draft.filter(|_| facts.speculates())?;
    let used = facts.model_methods().next().is_some();
    let found = Found::new(used).target(facts.config.names()).draft(draft.description.kind);
    let found = found.says("a draft was given, and none of the methods uses it");
    Some(match super::method_for(&facts.target, &draft) {
        Some(method) => found.cure(format!("add {method}, or leave the draft out")),
        None => found,
    })
}

fn draft_without_speculation(facts: &Facts<'_>) -> Option<Found> {
    let draft = facts.draft.filter(|_| !facts.speculates())?;
    Some(Found::new(false).draft(draft.description.kind).says("a draft was given, and there is no speculation"))
}

fn setting_range(facts: &Facts<'_>) -> Vec<Found> {
    let ranges = facts
        .config
        .ranges()
        .into_iter()
        .filter(|range| range.of.is_empty() || range.of.iter().any(|it| facts.has(*it)));
    let ranges = ranges.filter(|_| facts.speculates());
    let failed: Vec<Found> = ranges
        .filter(|range| !range.holds())
        .map(|range| {
            let found = Found::new(false).target(format!("{} = {}", range.setting, range.value));
            let found = found.says(format!("{} is out of its range", range.setting));
            found.cure(format!("choose a value of {} from {} to {}", range.setting, range.from, range.to))
        })
        .collect();
    match failed.is_empty() && facts.speculates() {
        true => vec![Found::new(true)],
        false => failed,
    }
}

fn lookup_cache(facts: &Facts<'_>) -> Vec<Found> {
    if !facts.has(Method::NgramCache) || facts.config.cache_files().next().is_none() {
        return Vec::new();
    }
    if facts.unreadable_caches.is_empty() {
        return vec![Found::new(true)];
    }
    let failed = facts.unreadable_caches.iter();
    failed.map(|(path, why)| Found::new(false).target(path.display()).says(format!("the lookup cache {why}"))).collect()
}

fn sampled_drafts(facts: &Facts<'_>) -> Option<Found> {
    let method = facts.model_methods().next().filter(|_| facts.config.draft_model.probabilistic)?;
    let selects = facts.draft.is_some_and(|draft| draft.description.kind == crate::file::Kind::Dflash2);
    let found = Found::new(matches!(method, Method::DraftSimple | Method::DraftMtp) || selects).target(method);
    Some(found.says(format!("{method} drafts the most probable tokens, whatever is asked for")))
}

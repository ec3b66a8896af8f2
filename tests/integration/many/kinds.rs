//! Every kind of drafter with a target whose text is known, and prompts for it.

use std::path::PathBuf;

use llama_spec_tests::zoo::{Chained, ChainedKind, Described as _, Family, Layout, Llama, Mamba, Qwen35, Transformer};
use llama_sys as sys;

use crate::many::Setup;

type Text = Box<dyn Fn(&[u32], usize) -> Vec<u32>>;

/// A target with a drafter.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    target: PathBuf,
    draft: Option<PathBuf>,
    types: Vec<sys::lsys_spec_type>,
    /// The target keeps a state for each drafted token.
    snapshots: bool,
    /// What the target says after a prompt.
    pub(crate) text: Text,
    pub(crate) prompts: [Vec<u32>; 4],
    /// They do not depend on other sequences.
    pub(crate) drafts_are_its_own: bool,
}

/// The longest draft of all tests.
pub(crate) const DRAFT_MAX: u32 = 5;

impl Kind {
    fn new(name: &'static str, of: sys::lsys_spec_type, target: PathBuf, draft: Option<PathBuf>, text: Text) -> Self {
        let prompts = ["The beginning", "a", "Something else, and longer than the others by far", "Qwerty"];
        let prompts = prompts.map(|prompt| Llama::target(1).vocabulary().tokenize(prompt));
        // The table of ngram-mod is that of all sequences, and of hy_v3 the third head reads a row of any of them.
        let drafts_are_its_own = of != sys::LSYS_SPEC_NGRAM_MOD && !name.contains("hy_v3");
        Self { name, target, draft, types: vec![of], snapshots: false, text, prompts, drafts_are_its_own }
    }

    fn with_snapshots(mut self) -> Self {
        self.snapshots = true;
        self
    }

    /// Prompts in which the drafters find what comes next.
    fn with_long_prompts(mut self) -> Self {
        for (prompt, more) in self.prompts.iter_mut().zip([130, 150, 110, 141]) {
            let text = (self.text)(prompt, more);
            prompt.extend(text);
        }
        self
    }

    pub(crate) fn setup(&self) -> Setup<'_> {
        Setup {
            target: &self.target,
            draft: self.draft.as_deref(),
            types: &self.types,
            draft_max: DRAFT_MAX,
            slots: 4,
            unified: false,
            micro_batch: 512,
            snapshots: if self.snapshots { DRAFT_MAX } else { 0 },
            probabilistic: false,
        }
    }
}

/// Drafters with a model.
pub(crate) fn models() -> Vec<Kind> {
    let (plain, recall) = (Llama::target(1), Llama::target(1).with_recall());
    let llama = |name, of, target: &Llama, draft: PathBuf| {
        let (path, target) = (target.cached().unwrap(), target.clone());
        Kind::new(name, of, path, Some(draft), Box::new(move |prompt, n| target.continuation(prompt, n)))
    };
    let eagle3 = sys::LSYS_SPEC_DRAFT_EAGLE3;
    let (dflash, dspark) = (sys::LSYS_SPEC_DRAFT_DFLASH, sys::LSYS_SPEC_DRAFT_DSPARK);
    let in_place = plain.dspark(0.8).with_layout(Layout::SparkInPlace);
    let mut all = vec![
        llama("draft-simple", sys::LSYS_SPEC_DRAFT_SIMPLE, &recall, recall.draft(0.8).cached().unwrap()),
        llama("eagle3", eagle3, &plain, plain.eagle3(0.8).cached().unwrap()),
        llama("eagle3 with recall", eagle3, &recall, recall.eagle3(1.0).cached().unwrap()),
        llama("dflash", dflash, &plain, plain.dflash(0.8).cached().unwrap()),
        llama("dflash2", dflash, &plain, plain.dflash2(0.8).cached().unwrap()),
        llama("dspark", dspark, &plain, plain.dspark(0.8).cached().unwrap()),
        llama("dspark in place", dspark, &plain, in_place.cached().unwrap()),
    ];
    all.extend(heads());
    all.push(recurrent_draft());
    all
}

/// Those that work where all sequences share one cache.
pub(crate) fn without_snapshots() -> Vec<Kind> {
    models().into_iter().filter(|kind| !kind.snapshots).collect()
}

/// Next-token heads of all sorts.
fn heads() -> Vec<Kind> {
    let kind = |name, target, draft, text| Kind::new(name, sys::LSYS_SPEC_DRAFT_MTP, target, draft, text);
    let mut all = Vec::new();
    for (name, separate, snapshots) in [
        ("mtp of a hybrid", false, true),
        ("mtp of a hybrid, separate", true, true),
        ("mtp of a hybrid, checkpoints", false, false),
    ] {
        let model = Qwen35::target(1).with_mtp(0.8);
        let head = separate.then(|| model.clone().head_only().cached().unwrap());
        let path = if separate { Qwen35::target(1).cached().unwrap() } else { model.cached().unwrap() };
        let made = kind(name, path, head, Box::new(move |prompt, n| model.continuation(prompt, n)));
        all.push(if snapshots { made.with_snapshots() } else { made });
    }
    for (name, of, separate) in [
        ("mtp chained", ChainedKind::Mimo2, false),
        ("mtp chained, separate", ChainedKind::Mimo2, true),
        ("mtp chained of hy_v3", ChainedKind::HyV3, false),
    ] {
        let model = Chained::target(of, 1).with_mtp(&[0.9, 0.8, 0.7]);
        let heads = separate.then(|| model.clone().heads_only().cached().unwrap());
        let path = if separate { Chained::target(of, 1).cached().unwrap() } else { model.cached().unwrap() };
        all.push(kind(name, path, heads, Box::new(move |prompt, n| model.continuation(prompt, n))));
    }
    let gemma4 = Transformer::target(Family::Gemma4, 1);
    let assistant = gemma4.assistant(0.8).cached().unwrap();
    let path = gemma4.cached().unwrap();
    all.push(kind(
        "assistant",
        path,
        Some(assistant),
        Box::new(move |prompt, n| gemma4.text().continuation(prompt, n)),
    ));
    all
}

/// A draft model behind a lookup.
pub(crate) fn lookup_and_model() -> Kind {
    let target = Llama::target(1);
    let (path, draft) = (target.cached().unwrap(), target.draft(0.8).cached().unwrap());
    let text: Text = Box::new(move |prompt, n| target.continuation(prompt, n));
    let mut kind = Kind::new("lookup and model", sys::LSYS_SPEC_DRAFT_SIMPLE, path, Some(draft), text);
    kind.types.push(sys::LSYS_SPEC_NGRAM_SIMPLE);
    kind.with_long_prompts()
}

/// Both memories go back by checkpoints.
fn recurrent_draft() -> Kind {
    let target = Mamba::target(1);
    let (path, draft) = (target.cached().unwrap(), target.draft(0.8).cached().unwrap());
    let text: Text = Box::new(move |prompt, n| target.continuation(prompt, n));
    Kind::new("draft-simple, recurrent", sys::LSYS_SPEC_DRAFT_SIMPLE, path, Some(draft), text)
}

/// Drafters that look up what stood in the text.
pub(crate) fn lookups() -> Vec<Kind> {
    let methods = [
        ("ngram-simple", sys::LSYS_SPEC_NGRAM_SIMPLE),
        ("ngram-map-k", sys::LSYS_SPEC_NGRAM_MAP_K),
        ("ngram-map-k4v", sys::LSYS_SPEC_NGRAM_MAP_K4V),
        ("ngram-mod", sys::LSYS_SPEC_NGRAM_MOD),
        ("ngram-cache", sys::LSYS_SPEC_NGRAM_CACHE),
    ];
    let target = Llama::target(1);
    let kind = |(name, of)| {
        let target = target.clone();
        let path = target.cached().unwrap();
        Kind::new(name, of, path, None, Box::new(move |prompt, n| target.continuation(prompt, n))).with_long_prompts()
    };
    methods.map(kind).into()
}

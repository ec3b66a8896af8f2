//! Everything the rules look at, as plain data.

use super::Conditions;
use crate::arch::Architecture;
use crate::file::{Description, ModelFile};
use crate::memory::Rollback;
use crate::spec::{Method, SpecConfig};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What the rules look at.
#[derive(Clone, Debug)]
pub(crate) struct Facts<'a> {
    pub target: Side<'a>,
    pub draft: Option<Side<'a>>,
    pub config: &'a SpecConfig,
    pub conditions: &'a Conditions,
    /// Whether target and draft are one file.
    pub same_file: bool,
    /// The first token from id 5 on whose text differs.
    pub difference: Option<TokenDifference>,
    /// The first token below id 5 whose text differs.
    pub early_difference: Option<TokenDifference>,
    /// The lookup caches that cannot be read, and why.
    pub unreadable_caches: Vec<(PathBuf, String)>,
    pub observed: Observed,
}

/// What is known only after loading, or after a few rounds. All `None` before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Observed {
    /// How far the target's context can be rolled back.
    pub target_rollback: Option<Rollback>,
    /// How far the draft's context can be rolled back.
    pub draft_rollback: Option<Rollback>,
    /// Whether models, contexts and buffers fit the memory of their devices.
    pub fits: Option<bool>,
    /// Whether rounds of drafting, verifying and rejecting ended as they should.
    pub rounds_work: Option<bool>,
    /// Whether drafted tokens were accepted on a text that repeats itself; hardly any are as good as none.
    pub drafts: Option<bool>,
}

impl Observed {
    /// Nothing observed yet.
    pub fn nothing() -> Self {
        Self::default()
    }
}

/// One of the two models.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side<'a> {
    pub description: &'a Description,
    pub architecture: Option<&'static Architecture>,
    /// A DSpark draft whose first row is a token, so that all rows of a block are drafts.
    pub anchor_first: bool,
    /// A DFlash draft that always computes whole blocks.
    pub whole_blocks: bool,
    /// The rows of its own output matrix.
    pub head_rows: Option<u64>,
    /// A block of MTP heads, and a tensor that is missing there.
    pub missing_head_tensor: Option<(u32, &'static str)>,
}

/// A token whose text is not the same in both vocabularies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenDifference {
    pub id: u32,
    pub target: String,
    pub draft: String,
}

/// llama.cpp does not compare the first tokens, which are often special ones (SPEC_VOCAB_CHECK_START_TOKEN_ID).
const FIRST_COMPARED: u32 = 5;

impl<'a> Facts<'a> {
    pub(crate) fn new(
        target: &'a ModelFile,
        draft: Option<&'a ModelFile>,
        config: &'a SpecConfig,
        conditions: &'a Conditions,
    ) -> Self {
        let vocabularies = draft.and_then(|draft| Some((target.tokenizer()?, draft.tokenizer()?)));
        let differs = |from: u32| {
            let (target, draft) = vocabularies?;
            let id = target.first_difference(draft, from)?;
            let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
            Some(TokenDifference { id, target: text(target.text(id)), draft: text(draft.text(id)) })
        };
        let (difference, early_difference) = match differs(0) {
            Some(first) if first.id < FIRST_COMPARED => (differs(FIRST_COMPARED), Some(first)),
            first => (first, None),
        };
        let size = target.tokenizer().map_or(i32::MAX as u32, |tokenizer| tokenizer.size());
        let unreadable = config.cache_files().filter_map(|(path, must_exist)| {
            Some((path.to_owned(), crate::spec::check_cache(path, must_exist, size).err()?))
        });
        Self {
            target: Side::of(target),
            draft: draft.map(Side::of),
            config,
            conditions,
            same_file: draft.is_some_and(|draft| target.is_same_file(draft)),
            difference,
            early_difference,
            unreadable_caches: unreadable.collect(),
            observed: Observed::default(),
        }
    }

    pub(crate) fn has(&self, method: Method) -> bool {
        self.config.methods.contains(&method)
    }

    /// Whether anything drafts.
    pub(crate) fn speculates(&self) -> bool {
        !self.config.methods.is_empty()
    }

    /// The methods that draft with a model or with heads, in order, each once.
    pub(crate) fn model_methods(&self) -> impl Iterator<Item = Method> {
        Method::ALL.into_iter().filter(|method| !method.is_lookup() && self.has(*method))
    }

    /// The draft, if it is one and a method drafts with it.
    pub(crate) fn used_draft(&self) -> Option<Side<'a>> {
        self.draft.filter(|draft| draft.description.kind.drafts() && self.model_methods().next().is_some())
    }

    /// The draft, if this method is asked for and the file is made for it.
    pub(crate) fn draft_for(&self, methods: &[Method]) -> Option<Side<'a>> {
        let fits = |draft: &Side<'_>| {
            methods.iter().any(|method| self.has(*method) && super::rules::fits(*method, draft.description.kind))
        };
        self.draft.filter(fits)
    }

    /// The file whose heads are used: the draft, or without one the target.
    pub(crate) fn heads(&self) -> Option<Side<'a>> {
        match self.draft {
            Some(_) => self.draft_for(&[Method::DraftMtp]),
            None => Some(self.target).filter(|_| self.has(Method::DraftMtp)),
        }
    }
}

impl<'a> Side<'a> {
    pub(crate) fn of(file: &'a ModelFile) -> Self {
        let description = file.description();
        let metadata = file.metadata();
        Self {
            anchor_first: metadata.bool("dflash.sample_from_anchor").unwrap_or(true),
            whole_blocks: metadata.u32("lilicorr.candidate_topk").is_some_and(|count| count > 0),
            head_rows: file.tensor("output.weight").and_then(|head| head.shape().get(1).copied()),
            missing_head_tensor: missing_head_tensor(file),
            ..Self::from(description)
        }
    }

    /// The tokens of its vocabulary.
    pub(crate) fn vocabulary(&self) -> Option<u32> {
        self.description.tokenizer.as_ref().map(|tokenizer| tokenizer.size)
    }

    /// Its architecture by name.
    pub(crate) fn name(&self) -> &'a str {
        self.description.architecture.as_deref().unwrap_or("unknown")
    }

    pub(crate) fn path(&self) -> &'a Path {
        &self.description.path
    }
}

impl<'a> From<&'a Description> for Side<'a> {
    fn from(description: &'a Description) -> Self {
        let architecture = description.architecture.as_deref().and_then(Architecture::find);
        Self {
            description,
            architecture,
            anchor_first: true,
            whole_blocks: false,
            head_rows: None,
            missing_head_tensor: None,
        }
    }
}

/// The first tensor that the declared MTP heads of a file must have and do not.
fn missing_head_tensor(file: &ModelFile) -> Option<(u32, &'static str)> {
    let description = file.description();
    let row = Architecture::find(description.architecture.as_deref()?)?;
    let blocks = description.layers..description.layers.saturating_add(description.mtp_layers);
    let mut names = blocks.flat_map(|block| row.head_tensors().map(move |name| (block, name)));
    names.find(|(block, name)| file.tensor(&format!("blk.{block}.{name}.weight")).is_none())
}

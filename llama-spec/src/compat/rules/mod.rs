//! The rules, by what they are about.

mod dependent;
mod devices;
mod input;
mod lengths;
mod memory;
mod methods;
mod models;
mod mtp;
mod observed;
mod vocabulary;

use super::facts::{Facts, Side};
use super::rule::{Found, Rule, Test};
use super::{Severity, Stage};
use crate::arch::Architecture;
use crate::file::Kind;
use crate::spec::Method;

pub(crate) use lengths::{clamped, longest as longest_draft};

/// The groups of rules with their titles, in the order in which they are reported.
pub(super) const GROUPS: &[(&str, &[Rule])] = &[
    ("Models", models::RULES),
    ("Methods", methods::RULES),
    ("Vocabularies", vocabulary::RULES),
    ("Multi-token prediction", mtp::RULES),
    ("Drafts that read the target's layers", dependent::RULES),
    ("Memory and rollback", memory::RULES),
    ("Lengths and batches", lengths::RULES),
    ("Devices and caches", devices::RULES),
    ("Inputs and outputs", input::RULES),
    ("What only running shows", observed::RULES),
];

/// Whether a draft of this kind is what the method drafts with.
pub(crate) fn fits(method: Method, kind: Kind) -> bool {
    match kind {
        Kind::Generative => method == Method::DraftSimple,
        Kind::GenerativeWithMtp => matches!(method, Method::DraftSimple | Method::DraftMtp),
        Kind::MtpHead | Kind::Gemma4Assistant => method == Method::DraftMtp,
        Kind::Eagle3 => method == Method::DraftEagle3,
        Kind::Dflash | Kind::Dflash2 => method == Method::DraftDflash,
        Kind::Dspark => method == Method::DraftDspark,
        _ => false,
    }
}

/// The method for a draft: its kind decides. A whole model with heads drafts with them if they are heads for this target,
/// and as a plain model otherwise. Nothing for what is no draft.
pub(crate) fn method_for(target: &Side<'_>, draft: &Side<'_>) -> Option<Method> {
    let (a, b) = (target.description, draft.description);
    let same_model = a.architecture == b.architecture && a.output_width == b.output_width && a.layers == b.layers;
    let usable = same_model && draft.architecture.is_some_and(Architecture::has_mtp);
    let skipped = if usable { Method::DraftSimple } else { Method::DraftMtp };
    let candidates = Method::ALL.into_iter().filter(|method| fits(*method, b.kind));
    let mut candidates = candidates.filter(|method| b.kind != Kind::GenerativeWithMtp || *method != skipped);
    candidates.next()
}

/// A number that the file does not give is a dash.
fn show(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

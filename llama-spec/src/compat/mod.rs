//! What goes together: one table of rules over files and settings.
//!
//! llama.cpp compares two models in one case only, and meets most other combinations that cannot work with an abort, an
//! empty result, or no drafts and no word about it. Here every such combination is a [`Rule`]: it has a stable code, says
//! what must hold, what to do if it does not, and where in llama.cpp's source that is from. [`SpecConfig::auto`], the
//! builder and [`SpecConfig::check`], the [`Report`], the programs, the documentation and the tests all use this table, and
//! no check is anywhere else.
//!
//! ```
//! use llama_spec::compat::{Conditions, Report, Verdict};
//! use llama_spec::file::ModelFile;
//! use llama_spec::options::KvType;
//! # use llama_spec_tests::zoo;
//!
//! let target = ModelFile::open(zoo::file("target"))?;
//! let conditions = Conditions::default().slots(4).kv_types(KvType::Q8_0, KvType::Q8_0);
//! let report = Report::new(&target, None, None, &conditions);
//! assert_eq!(report.verdict, Verdict::Works);
//! for check in report.failed() {
//!     println!("{check}");
//! }
//! println!("{} bytes", report.memory.total);
//! # Ok::<_, llama_spec::Error>(())
//! ```
//!
//! [`SpecConfig::auto`]: crate::spec::SpecConfig::auto
//! [`SpecConfig::check`]: crate::spec::SpecConfig::check

mod check;
mod conditions;
mod facts;
mod memory;
mod report;
mod rule;
mod rules;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use check::{Check, Incompatible, Severity, Stage};
pub use conditions::Conditions;
pub use facts::Observed;
pub use memory::MemoryEstimate;
pub use report::{Report, Verdict};
pub use rule::{Rule, rules_page};

pub(crate) use facts::{Facts, Side};
pub(crate) use rule::refusal;
pub(crate) use rules::{clamped, method_for};

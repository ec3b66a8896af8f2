//! Models by description: what they answer is known, their files are written once and kept.

mod additions;
mod assistant;
mod assistant_weights;
mod cache;
mod chain;
mod chained;
mod chained_weights;
mod described;
mod dflash;
mod dflash_heads;
mod dflash_weights;
mod eagle3;
mod eagle3_weights;
mod encoders;
mod file;
mod huge;
mod latches;
mod layers;
mod linear;
mod llama;
mod mamba;
mod mamba_weights;
mod named;
mod places;
mod qwen35;
mod qwen35_weights;
mod recall;
mod rounds;
mod rows;
mod sample;
mod transformer;
mod transformer_weights;
mod units;
mod weights;

pub use assistant::Assistant;
pub use cache::directory;
pub use chained::{Chained, ChainedKind};
pub use described::Described;
pub use dflash::{Dflash, Layout};
pub use eagle3::Eagle3;
pub use file::file;
pub use llama::{CHAT_TEMPLATE, Llama, Shape, TOOLS_TEMPLATE};
pub use mamba::Mamba;
pub use named::{Named, bench_draft, bench_target, named};
pub use qwen35::Qwen35;
pub use rounds::{Acceptance, Round};
pub use transformer::{Family, Transformer};

#[cfg(test)]
mod tests;

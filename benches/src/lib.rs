//! What the benches share, and the comparison with llama-server.

#[path = "../../llama-sys/bench/bare_loop.rs"]
mod bare_loop;
pub mod compare;
mod models;
mod ratio;
mod rows;
#[path = "../../xtask/src/table.rs"]
mod table;

pub use bare_loop::BareLoop;
pub use models::smollm2;
pub use ratio::{Ratio, geometric_mean, paired, paired_times};
pub use rows::{row_times, told};

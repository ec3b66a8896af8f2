//! An engine in a process of its own, started again when it dies, with no text lost.
//!
//! llama.cpp aborts where a Rust program would return an error, and a driver can hang or crash. A [`Supervisor`] keeps the
//! engine in a *worker*: a process of the same program that owns everything C has. The program itself never touches llama.cpp;
//! it hands over [`Task`]s and gets [`Update`]s. When the worker dies, makes no progress or breaks down, another is started by
//!
//! | file | what it is about |
//! |---|---|
//! | [`load`] | what a worker loads |
//! | [`task`] | what it is asked for, and what it answers |
//! | [`status`] | what is known of it at any time, without asking it |

mod hook;
pub mod load;
pub mod policy;
#[allow(dead_code, reason = "the other side follows")]
pub(crate) mod service;
pub mod status;
pub mod task;
#[allow(dead_code, reason = "the supervisor follows")]
mod vitals;
#[allow(dead_code, reason = "the supervisor follows")]
mod watch;
#[allow(dead_code, reason = "the other side follows")]
mod wire;

pub use hook::hook;
pub use load::Load;
pub use status::{Info, State, Status};
pub use task::{Problem, ProblemKind, Question, Reply, Task, Update};
pub use wire::RefusalKind;

//! An engine in a process of its own, started again when it dies, with no text lost.
//!
//! llama.cpp aborts where a Rust program would return an error, and a driver can hang or crash. A [`Supervisor`] keeps the
//! engine in a *worker*: a process of the same program that owns everything C has. The program itself never touches llama.cpp;
//! it hands over [`Task`]s and gets [`Update`]s. When the worker dies, makes no progress or breaks down, another is started by
//! the rules of [`policy`], and the texts go on there from their prompts and the tokens that were delivered: their readers see a
//! pause ([`Update::Paused`]) and then the rest.
//!
//! Greedy texts, and seeded ones whose sampler can be saved, go on as they would have where computing several tokens at once rounds
//! as computing them one by one, or leaves a clear margin. Kernels for quantized weights do not always: there a near-tie can turn
//! around, and the text goes on sensibly but differently. A text that cannot go on as its seed asks for ends with
//! [`ProblemKind::Interrupted`].
//!
//! The program calls [`isolate::hook`](crate::isolate::hook()) or [`hook`](hook()) first in its `main`, which is what a worker does.
//!
//! ```no_run
//! use llama_spec::Request;
//! use llama_spec::supervise::{Load, Supervisor, Task, Update};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! llama_spec::isolate::hook(); // first in `main`
//! let supervisor = Supervisor::builder(Load::new("target.gguf")).start()?;
//! supervisor.first_load().await?;
//! for (_answer, step) in supervisor.submit(Task::text(Request::prompt("Once upon a time")))? {
//!     match step? {
//!         Update::Tokens(tokens) => tokens.iter().for_each(|token| print!("{}", token.text)),
//!         Update::Paused { reason } => eprintln!("[{reason}]"),
//!         _ => {}
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | file | what it is about |
//! |---|---|
//! | [`load`] | what a worker loads |
//! | [`task`] | what it is asked for, and what it answers |
//! | [`status`] | what is known of it at any time, without asking it |
//! | [`policy`] | what is done when it breaks down |
//! | `supervisor/` | the side that stays: which worker there is, where each text stands |
//! | `process.rs`, `thread.rs` | workers as processes, and as threads |
//! | `watch.rs`, `vitals.rs` | whether a worker is stuck, and whether what it gives is sensible |
//! | `service/` | the side of the worker |
//! | `wire.rs` | what both say to each other |

mod hook;
pub mod load;
pub mod policy;
mod process;
pub(crate) mod service;
pub mod status;
mod supervisor;
pub mod task;
mod thread;
mod vitals;
mod watch;
mod wire;

pub use hook::hook;
pub use load::Load;
pub use policy::Policy;
pub use status::{Info, State, Status};
pub use supervisor::{Answers, Canceller, Refused, Running, Supervisor, SupervisorBuilder};
pub use task::{Problem, ProblemKind, Question, Reply, Task, Update};
pub use wire::RefusalKind;

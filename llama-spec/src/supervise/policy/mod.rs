//! What is done when a worker breaks down: a state machine without processes, threads or clocks.
//!
//! A [`Recovery`] is told [`Event`]s with the time at which they came, and answers with [`Action`]s. It keeps what the user asked
//! for apart from what is loaded, so that a recovery never changes the former. It is plain data: whoever holds a lock around it
//! has decided everything that happens at once, and applications can use it with processes of their own. What it is in is told
//! by [`Recovery::state`].
//!
//! | | waits to start a worker | a worker loads | it serves | failed | nothing asked for |
//! |---|---|---|---|---|---|
//! | `Load`, `Reload` | start with that instead | kill it, start another | let it end, start another | start | start |
//! | `SetDraft` | as `Load` | as `Load` | the same worker loads that | as `Load` | - |
//! | `Unload` | nothing is started | kill it | let it end | nothing is loaded | - |
//! | `Stop` | nothing is started ever | kill it | let it end | nothing is started ever | nothing is started ever |
//! | `Loaded` | - | serve | - | - | - |
//! | `Refused`, load of the user, not for its trial | - | reject it | - | - | - |
//! | `Refused`, `Broken`, `Gone`, load of the user | - | start with less, at once; reject it if nothing is left to take | - | - | - |
//! | `Refused`, `Broken`, `Gone`, draft of the user | - | reject it | - | - | - |
//! | `Refused`, `Broken`, `Gone`, in a recovery | - | pause, then the same if it has served before, else with less | - | - | - |
//! | `Refused`, `Broken`, `Gone`, when it was tried again | - | pause, then what had served | - | - | - |
//! | `Broken`, `Gone`, model drafts active | - | - | pause, then without them | - | - |
//! | `Broken`, `Gone`, else | - | - | pause, then the same | - | - |
//! | `Tick` | start, when the pause is over and the last worker has ended | - | after a period: what was asked for is tried again | - | - |
//!
//! * *Less* is: whole layers instead of tensor parallelism, with speculation as it was asked for; then no flash attention, unless
//!   the V cache is quantized; then no methods that draft with a model; then no speculation. Each step is recorded.
//! * What is *rejected* is not asked for any more, and what served before is loaded again. If nothing did, it is given up.
//! * *Model drafts* are what the worker told to be active, whatever way it was asked for: by name, chosen for the files, or heads of
//!   the target. Lookup methods that were active beside them stay. What took their place is told by [`Recovery::speculation`] with a
//!   reason that begins with `runtime_error: `. Drafters of the program's own are not taken away, since they are not part of a
//!   [`Load`](super::Load): the program is told with each start how many there were before.
//! * There is no *pause* after the first breakdown; after each further one within [`Policy::window`] it is longer, and with more than
//!   [`Policy::crashes`] of them it is given up.
//! * A *period* is [`Policy::period`] of serving without a breakdown. Then what was asked for is tried again as soon as the worker has
//!   nothing to do, or after a second period in any case; it is loaded by the same worker, which need not load the target again. If that
//!   fails, or breaks down within a period, what had served before is loaded again and the period is twice as long.
//! * A worker that was told to end or was killed cannot break down any more, and no other is started before it has ended.
//! * What a worker tells that was replaced since is ignored, so the user's last word always wins over a recovery.
//!
//! ```
//! use llama_spec::spec::{Method, SpecConfig, Speculation};
//! use llama_spec::supervise::Load;
//! use llama_spec::supervise::policy::{Action, Event, Policy, Recovery};
//! use std::time::Instant;
//!
//! let mut recovery = Recovery::new(Policy::default());
//! let now = Instant::now();
//! let mut load = Load::new("target.gguf");
//! load.draft = Some("draft.gguf".into());
//! let actions = recovery.handle(Event::Load(Box::new(load.clone())), now);
//! assert!(matches!(&actions[0], Action::Start { worker: 1, load: first, .. } if **first == load));
//!
//! let mut speculation = Speculation::default();
//! speculation.requested = vec![Method::DraftSimple];
//! speculation.effective = vec![Method::DraftSimple];
//! assert_eq!(recovery.handle(Event::Loaded { worker: 1, speculation }, now), [Action::Serve { worker: 1 }]);
//!
//! // It aborts: the next one does without the draft, and what was asked for is not forgotten.
//! let what = "the worker died (signal 6: abort)".to_owned();
//! let actions = recovery.handle(Event::Gone { worker: 1, what, log: Vec::new() }, now);
//! let Some(Action::Start { worker: 2, load: next, .. }) = actions.last() else { panic!("{actions:?}") };
//! assert_eq!((&next.draft, &next.speculation), (&None, &Some(SpecConfig::off())));
//! assert_eq!(recovery.requested(), Some(&load));
//! ```

mod attempt;
mod event;
mod recovery;
mod settings;
#[cfg(test)]
mod tests;

pub use event::{Action, Event, GivenUp};
pub use recovery::Recovery;
pub use settings::Policy;

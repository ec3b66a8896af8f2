//! What the interface needs of an engine: small enough to be played by a script in tests.

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use llama_spec::engine::EngineStats;
use llama_spec::spec::{SpecConfig, Speculation};
use llama_spec::supervise::{Info, Load, Problem, Question, Reply, Running, State, Task, Update};
use std::path::PathBuf;
use std::time::Duration;

/// The steps of the answers of a task, each with the number of the answer. It ends when all answers have ended; dropping it
/// cancels what still runs. What is not read waits there, not here.
pub type Answers = BoxStream<'static, (u32, Result<Update, Problem>)>;

/// An engine, wherever it runs.
pub trait Backend: Send + Sync + 'static {
    /// What is known of it. Never waits.
    fn status(&self) -> Snapshot;

    /// Begins to generate, at once.
    ///
    /// # Errors
    /// When the task is not taken.
    fn submit(&self, task: Task) -> Result<Answers, Problem>;

    /// Answers a question for which nothing is generated.
    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Reply, Problem>>;

    /// Loads something else.
    fn load(&self, load: Load, running: Running) -> BoxFuture<'static, Result<(), Problem>>;

    /// Loads again what was asked for.
    fn reload(&self, running: Running) -> BoxFuture<'static, Result<(), Problem>>;

    /// Drops what is loaded.
    fn unload(&self, running: Running) -> BoxFuture<'static, Result<(), Problem>>;

    /// Attaches a draft, or detaches it, and chooses the methods.
    fn set_draft(
        &self,
        draft: Option<PathBuf>,
        speculation: Option<SpecConfig>,
        running: Running,
    ) -> BoxFuture<'static, Result<(), Problem>>;
}

/// What the interface may tell of an engine: the status without the lines that workers wrote, so that none gets out by mistake.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// What it can do now.
    pub state: State,
    /// What it was asked to load.
    pub requested: Option<Load>,
    /// The same, also after it was unloaded.
    pub last_requested: Option<Load>,
    /// What is loaded.
    pub effective: Option<Load>,
    /// What is known of the loaded models.
    pub info: Option<Info>,
    /// What speculation came to.
    pub speculation: Speculation,
    /// How long ago the last decode was, and whether it gave what it should.
    pub last_decode: Option<(Duration, bool)>,
    /// Its numbers, those of earlier workers included.
    pub stats: EngineStats,
    /// Workers that were started in place of others.
    pub restarts: u64,
    /// What was done about failures, oldest first: how long ago, and what.
    pub recoveries: Vec<(Duration, String)>,
}

impl Snapshot {
    /// Why no text would be generated now; nothing if one would.
    ///
    /// A state alone is not believed: the last decode must be good, and not older than `oldest`.
    pub fn unready(&self, oldest: Duration) -> Option<String> {
        if !self.state.is_serving() {
            return Some(self.state.reason().map_or_else(|| self.state.name().into(), str::to_owned));
        }
        match self.last_decode {
            None => Some("it has not generated anything yet".into()),
            Some((_, false)) => Some("the last thing it generated was not what it should have been".into()),
            Some((age, true)) if age > oldest => {
                Some(format!("it has not generated anything for {} seconds", age.as_secs()))
            }
            Some(_) => None,
        }
    }

    /// The room of a slot in tokens, if a model is loaded.
    pub(super) fn context(&self) -> Option<u32> {
        self.info.as_ref().map(|info| info.context)
    }

    /// The tokens of the vocabulary, if a model is loaded.
    pub(super) fn vocabulary(&self) -> Option<u32> {
        self.info.as_ref().map(|info| info.vocabulary)
    }
}

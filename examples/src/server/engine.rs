//! The engine behind the interface: a supervisor.

use super::api::{Answers, Backend, Snapshot};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use llama_spec::spec::SpecConfig;
use llama_spec::supervise::{Load, Problem, Question, Reply, Running, Supervisor, Task};
use std::path::PathBuf;

impl Backend for Supervisor {
    fn status(&self) -> Snapshot {
        let status = Self::status(self);
        Snapshot {
            state: status.state,
            requested: status.requested,
            last_requested: status.last_requested,
            effective: status.effective,
            info: status.info,
            speculation: status.speculation,
            last_decode: status.last_decode.map(|last| (last.age, last.ok)),
            stats: status.stats,
            restarts: status.restarts,
            recoveries: status.recoveries.into_iter().map(|recovery| (recovery.age, recovery.what)).collect(),
        }
    }

    fn submit(&self, task: Task) -> Result<Answers, Problem> {
        Self::submit(self, task).map(StreamExt::boxed)
    }

    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Reply, Problem>> {
        let supervisor = self.clone();
        async move { supervisor.ask(question).await }.boxed()
    }

    fn load(&self, load: Load, running: Running) -> BoxFuture<'static, Result<(), Problem>> {
        let supervisor = self.clone();
        async move { supervisor.load(load, running).await }.boxed()
    }

    fn reload(&self, running: Running) -> BoxFuture<'static, Result<(), Problem>> {
        let supervisor = self.clone();
        async move { supervisor.reload(running).await }.boxed()
    }

    fn unload(&self, running: Running) -> BoxFuture<'static, Result<(), Problem>> {
        let supervisor = self.clone();
        async move { supervisor.unload(running).await }.boxed()
    }

    fn set_draft(
        &self,
        draft: Option<PathBuf>,
        speculation: Option<SpecConfig>,
        running: Running,
    ) -> BoxFuture<'static, Result<(), Problem>> {
        let supervisor = self.clone();
        async move { supervisor.set_draft(draft, speculation, running).await }.boxed()
    }
}

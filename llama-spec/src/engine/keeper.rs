//! Puts texts that have ended into the store, on a thread of its own: a long one takes some milliseconds, for which no other text
//! is to wait.

use crate::error::{Error, Failure, Result};
use crate::runner::Kept;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// Texts that may wait. More are not kept.
const WAITING: usize = 64;

/// The thread. Dropping it waits until all texts are where they are to be.
#[derive(Debug)]
pub(super) struct Keeper {
    texts: Option<SyncSender<Kept>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// # Errors
    /// [`Error::Context`] when there can be no thread.
    pub(super) fn start() -> Result<Self> {
        let (texts, incoming) = sync_channel::<Kept>(WAITING);
        let thread = thread::Builder::new().name("llama-spec texts".into());
        let thread = thread.spawn(move || incoming.iter().for_each(|kept| kept.put()));
        let thread = thread.map_err(|error| Error::Context { failure: Failure::new(format!("no thread: {error}")) })?;
        Ok(Self { texts: Some(texts), thread: Some(thread) })
    }

    /// Keeps it soon. Never waits.
    pub(super) fn keep(&self, kept: Kept) {
        if self.texts.as_ref().is_some_and(|texts| texts.try_send(kept).is_err()) {
            tracing::debug!("a text is not kept for lookup: too many wait");
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.texts = None;
        // A panic there was told when it happened, and costs texts of which nothing depends.
        self.thread.take().map(JoinHandle::join);
    }
}

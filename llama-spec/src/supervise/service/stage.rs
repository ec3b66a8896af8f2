//! The engine that serves at the moment, if there is one.

use crate::chat::ChatTemplate;
use crate::engine::Engine;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often it is looked whether the last text has let go of an engine.
const STEP: Duration = Duration::from_millis(5);

/// An engine and what belongs to it.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) engine: Engine,
    /// Or why conversations cannot be rendered.
    pub(super) template: Result<ChatTemplate, String>,
}

/// The place of the engine. Nobody holds the lock for longer than a look.
#[derive(Debug, Default)]
pub(super) struct Stage(Mutex<Option<Arc<Loaded>>>);

impl Stage {
    /// The engine, for who does not keep it for long.
    pub(super) fn now(&self) -> Option<Arc<Loaded>> {
        self.lock().clone()
    }

    /// Something about the engine. The engine cannot be dropped meanwhile, so the caller never waits for its thread.
    pub(super) fn look<T>(&self, at: impl FnOnce(&Loaded) -> T) -> Option<T> {
        self.lock().as_deref().map(at)
    }

    pub(super) fn put(&self, loaded: Loaded) {
        *self.lock() = Some(Arc::new(loaded));
    }

    /// Takes the engine away and ends it, with all its texts; waits for as long as somebody may still be about to use it.
    pub(super) fn clear(&self, longest: Duration) {
        let taken = self.lock().take();
        let Some(mut loaded) = taken else { return };
        // Nothing is taken any more from those who hold it.
        loaded.engine.drain(Duration::ZERO);
        let start = Instant::now();
        while let Err(held) = Arc::try_unwrap(loaded) {
            if start.elapsed() >= longest {
                return;
            }
            loaded = held;
            thread::sleep(STEP);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Loaded>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

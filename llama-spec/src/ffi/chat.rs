//! Chat templates and answer parsers of llama.cpp: the owners of their handles. What goes in and out is JSON.

use super::status::{Failed, c_string, call, take_text};
use crate::error::{Error, Failure};
use crate::model::Model;
use llama_sys as sys;
use std::ptr::NonNull;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long to wait for others. A schema that takes long is theirs, and they are given up in the end.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// The same for a model that is being loaded, which would have to do without its template.
const LONGEST_WAIT_OF_A_MODEL: Duration = Duration::from_secs(60);

/// Whose turn it is. Templates are rendered by one thread at a time: llama.cpp asks for the date through `std::localtime`, whose
/// result is one for the whole process. The same call makes the grammar of a schema, which can take longer.
struct Turns {
    state: Mutex<Turn>,
    over: Condvar,
}

#[derive(Clone, Copy)]
struct Turn {
    taken: bool,
    waiting: usize,
}

/// The right to render. Dropping it gives it back.
struct Rendering(&'static Turns);

static TURNS: Turns = Turns::new();

impl Turns {
    const fn new() -> Self {
        Self { state: Mutex::new(Turn { taken: false, waiting: 0 }), over: Condvar::new() }
    }

    /// Waits for a turn, but not longer than this.
    ///
    /// # Errors
    /// [`Error::Busy`] when it did not come.
    fn wait(&'static self, longest: Duration) -> Result<Rendering, Error> {
        let mut state = self.lock();
        state.waiting += 1;
        let waited = self.over.wait_timeout_while(state, longest, |turn| turn.taken);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.waiting -= 1;
        match state.taken {
            true => Err(Error::Busy { waiting: state.waiting + 1 }),
            false => {
                state.taken = true;
                Ok(Rendering(self))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Turn> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Rendering {
    fn drop(&mut self) {
        self.0.lock().taken = false;
        self.0.over.notify_one();
    }
}

/// The templates of a model: the default one, and one for tools where it has that. Fields drop in this order.
#[derive(Debug)]
pub(crate) struct RawTemplates {
    handle: TemplatesHandle,
    model: Model,
}

#[derive(Debug)]
struct TemplatesHandle(NonNull<sys::lsys_chat_templates>);

impl Drop for TemplatesHandle {
    fn drop(&mut self) {
        // SAFETY: the handle came from lsys_chat_templates_new and is freed only here.
        unsafe { sys::lsys_chat_templates_free(self.0.as_ptr()) }
    }
}

// SAFETY: templates have no ties to the thread that made them.
unsafe impl Send for RawTemplates {}
// SAFETY: shim.h takes them as const everywhere; what runs them has its turn, the rest reads strings.
unsafe impl Sync for RawTemplates {}

impl RawTemplates {
    /// From the source, or the model's own.
    ///
    /// # Errors
    /// [`Error::Busy`] when others take too long; otherwise what the shim says.
    pub(crate) fn load(model: &Model, source: Option<&str>) -> Result<Result<Self, Failed>, Error> {
        let _turn = TURNS.wait(LONGEST_WAIT_OF_A_MODEL)?;
        Ok(Self::load_now(model, source))
    }

    fn load_now(model: &Model, source: Option<&str>) -> Result<Self, Failed> {
        let invalid = |failure: Failure| Failed { status: sys::LSYS_INVALID, failure };
        let source = source.map(c_string).transpose().map_err(invalid)?;
        let source = source.as_ref().map_or(std::ptr::null(), |source| source.as_ptr());
        let mut templates = std::ptr::null_mut();
        // SAFETY: the model is alive; the source is null or NUL-terminated and lives during the call.
        call(|| unsafe { sys::lsys_chat_templates_new(model.raw().as_ptr(), source, &mut templates) })?;
        let handle = NonNull::new(templates).expect("shim.h: templates are made when the status is LSYS_OK");
        Ok(Self { handle: TemplatesHandle(handle), model: model.clone() })
    }

    fn as_ptr(&self) -> *const sys::lsys_chat_templates {
        self.handle.0.as_ptr()
    }

    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    pub(crate) fn source(&self) -> Result<String, Failed> {
        // SAFETY: the templates are alive; reads only.
        let source = take_text(|out| unsafe { sys::lsys_chat_templates_source(self.as_ptr(), out) })?;
        Ok(String::from_utf8_lossy(&source).into_owned())
    }

    pub(crate) fn capabilities(&self) -> Result<Vec<u8>, Failed> {
        // SAFETY: as in `source`.
        take_text(|out| unsafe { sys::lsys_chat_templates_caps(self.as_ptr(), out) })
    }
}

/// A rendered conversation and the parser of its answer. Fields drop in this order.
#[derive(Debug)]
pub(crate) struct RawChat {
    handle: ChatHandle,
    /// Keeps the templates, and with them the model, whose vocabulary the parser may use.
    _templates: Arc<RawTemplates>,
}

#[derive(Debug)]
struct ChatHandle(NonNull<sys::lsys_chat>);

impl Drop for ChatHandle {
    fn drop(&mut self) {
        // SAFETY: the handle came from lsys_chat_new and is freed only here.
        unsafe { sys::lsys_chat_free(self.0.as_ptr()) }
    }
}

// SAFETY: a chat has no ties to the thread that made it, and RawChat is not Sync.
unsafe impl Send for RawChat {}

impl RawChat {
    /// # Errors
    /// [`Error::Busy`] when others take too long, [`Error::Chat`] for what the shim refuses.
    pub(crate) fn new(templates: &Arc<RawTemplates>, inputs: &str) -> Result<Self, Error> {
        let refused = |failure: Failure| Error::Chat { failure };
        let inputs = c_string(inputs).map_err(refused)?;
        let mut chat = std::ptr::null_mut();
        let _turn = TURNS.wait(LONGEST_WAIT)?;
        // SAFETY: the templates are alive; the inputs are NUL-terminated and live during the call.
        call(|| unsafe { sys::lsys_chat_new(templates.as_ptr(), inputs.as_ptr(), &mut chat) })
            .map_err(|failed| refused(failed.into()))?;
        let handle = NonNull::new(chat).expect("shim.h: a chat is made when the status is LSYS_OK");
        Ok(Self { handle: ChatHandle(handle), _templates: Arc::clone(templates) })
    }

    pub(crate) fn rendered(&self) -> Result<Vec<u8>, Failed> {
        // SAFETY: the chat is alive; reads only.
        take_text(|out| unsafe { sys::lsys_chat_rendered(self.handle.0.as_ptr(), out) })
    }

    /// Not again after the last piece.
    pub(crate) fn feed(&mut self, piece: &str, last: bool) -> Result<Vec<u8>, Failed> {
        // SAFETY: the chat is alive; the piece is given with its length.
        take_text(|out| unsafe {
            sys::lsys_chat_feed(self.handle.0.as_ptr(), piece.as_ptr().cast(), piece.len(), last, out)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn who_waits_too_long_for_others_is_told_so() {
        static TURNS: Turns = Turns::new();
        let turn = TURNS.wait(Duration::ZERO).unwrap();
        assert!(matches!(TURNS.wait(Duration::from_millis(1)), Err(Error::Busy { waiting: 1 })));
        let (come, came) = mpsc::channel();
        let waiting = thread::spawn(move || come.send(TURNS.wait(Duration::from_secs(60)).is_ok()).unwrap());
        drop(turn);
        assert!(came.recv().unwrap());
        waiting.join().unwrap();
        // It was given back.
        assert!(TURNS.wait(Duration::ZERO).is_ok());
    }
}

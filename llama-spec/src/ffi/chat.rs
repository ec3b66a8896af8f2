//! Chat templates and answer parsers of llama.cpp: the owners of their handles. What goes in and out is JSON.

use super::status::{Failed, c_string, call, take_text};
use crate::error::Failure;
use crate::model::Model;
use llama_sys as sys;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Templates are rendered by one thread at a time: llama.cpp asks for the date through `std::localtime`, whose result is one
/// for the whole process.
fn rendering() -> MutexGuard<'static, ()> {
    static RENDERING: Mutex<()> = Mutex::new(());
    RENDERING.lock().unwrap_or_else(PoisonError::into_inner)
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
// SAFETY: shim.h takes them as const everywhere; what runs them holds the lock of `rendering`, the rest reads strings.
unsafe impl Sync for RawTemplates {}

impl RawTemplates {
    /// From the source, or the model's own.
    pub(crate) fn load(model: &Model, source: Option<&str>) -> Result<Self, Failed> {
        let invalid = |failure: Failure| Failed { status: sys::LSYS_INVALID, failure };
        let source = source.map(c_string).transpose().map_err(invalid)?;
        let source = source.as_ref().map_or(std::ptr::null(), |source| source.as_ptr());
        let mut templates = std::ptr::null_mut();
        let _rendering = rendering();
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
    pub(crate) fn new(templates: &Arc<RawTemplates>, inputs: &str) -> Result<Self, Failure> {
        let inputs = c_string(inputs)?;
        let mut chat = std::ptr::null_mut();
        let _rendering = rendering();
        // SAFETY: the templates are alive; the inputs are NUL-terminated and live during the call.
        call(|| unsafe { sys::lsys_chat_new(templates.as_ptr(), inputs.as_ptr(), &mut chat) })?;
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

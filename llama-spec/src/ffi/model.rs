//! A loaded model: the owner of its handle, and the facts that are read from it.

use super::backend::text;
use super::params::ModelArrays;
use super::status::{Failed, c_string, call, fill};
use crate::error::Failure;
use llama_sys as sys;
use std::any::Any;
use std::ffi::{CString, c_char, c_void};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;

/// Told of the share loaded so far, 0 to 1; `Break` cancels.
pub(crate) type Progress<'a> = dyn FnMut(f32) -> ControlFlow<()> + Send + 'a;

#[derive(Debug)]
pub(crate) struct RawModel(NonNull<sys::llama_model>);

// SAFETY: llama.cpp only reads a loaded model; contexts of it may be used on different threads (llama.h's own servers do).
// What changes it is making a context, which `Model` serialises.
unsafe impl Send for RawModel {}
// SAFETY: as above.
unsafe impl Sync for RawModel {}

impl Drop for RawModel {
    fn drop(&mut self) {
        // SAFETY: the handle came from lsys_model_load, is freed only here, and all contexts hold the model by Arc.
        unsafe { sys::llama_model_free(self.0.as_ptr()) }
    }
}

/// What loading ended with when it did not end in a model.
pub(crate) enum LoadStop {
    Cancelled,
    Failed(Failure),
}

struct ProgressState<'a> {
    callback: &'a mut Progress<'a>,
    cancelled: bool,
    panic: Option<Box<dyn Any + Send>>,
}

unsafe extern "C" fn on_progress(share: f32, state: *mut c_void) -> bool {
    // SAFETY: `load` passes its own ProgressState, which lives until lsys_model_load has returned, and nothing else uses it.
    let state = unsafe { &mut *state.cast::<ProgressState<'_>>() };
    match catch_unwind(AssertUnwindSafe(|| (state.callback)(share))) {
        Ok(ControlFlow::Continue(())) => true,
        Ok(ControlFlow::Break(())) => {
            state.cancelled = true;
            false
        }
        Err(panic) => {
            state.panic = Some(panic);
            false
        }
    }
}

impl RawModel {
    /// Loads from one file or from all parts in order.
    pub(crate) fn load<'a>(
        paths: &[CString],
        mut params: sys::llama_model_params,
        arrays: &mut ModelArrays,
        progress: &'a mut Progress<'a>,
    ) -> Result<Self, LoadStop> {
        arrays.apply(&mut params);
        let mut state = ProgressState { callback: progress, cancelled: false, panic: None };
        params.progress_callback = Some(on_progress);
        params.progress_callback_user_data = (&raw mut state).cast();
        let mut pointers: Vec<*const c_char> = paths.iter().map(|path| path.as_ptr()).collect();
        let mut model = std::ptr::null_mut();
        // SAFETY: all arrays and strings live in `arrays` and `paths` beyond the call, and are ended as llama.h asks.
        let done = call(|| unsafe { sys::lsys_model_load(pointers.as_mut_ptr(), pointers.len(), &params, &mut model) });
        if let Some(panic) = state.panic {
            resume_unwind(panic);
        }
        match (done, NonNull::new(model)) {
            (Ok(()), Some(model)) => Ok(Self(model)),
            (Err(_), _) if state.cancelled => Err(LoadStop::Cancelled),
            (Err(failed), _) => Err(LoadStop::Failed(failed.into())),
            (Ok(()), None) => Err(LoadStop::Failed(Failure::default())),
        }
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::llama_model {
        self.0.as_ptr()
    }

    /// Reads one fact.
    pub(crate) fn ask<T>(&self, fact: unsafe extern "C" fn(*const sys::llama_model) -> T) -> T {
        // SAFETY: the facts passed here are the getters of llama.h that take a loaded model and read plain fields of it.
        unsafe { fact(self.as_ptr()) }
    }

    pub(crate) fn vocab(&self) -> *const sys::llama_vocab {
        self.ask(sys::llama_model_get_vocab)
    }

    pub(crate) fn description(&self) -> String {
        // SAFETY: llama_model_desc writes at most the given size into the buffer, NUL-terminated.
        self.text(|buffer, size| unsafe { sys::llama_model_desc(self.as_ptr(), buffer, size) }).unwrap_or_default()
    }

    pub(crate) fn metadata(&self, key: &str) -> Option<String> {
        let key = c_string(key).ok()?;
        // SAFETY: as above; the key is NUL-terminated.
        self.text(|buffer, size| unsafe { sys::llama_model_meta_val_str(self.as_ptr(), key.as_ptr(), buffer, size) })
    }

    pub(crate) fn metadata_at(&self, index: i32) -> Option<(String, String)> {
        // SAFETY: as above; an index out of range gives -1.
        let key =
            self.text(|buffer, size| unsafe { sys::llama_model_meta_key_by_index(self.as_ptr(), index, buffer, size) });
        // SAFETY: as above.
        let value = self
            .text(|buffer, size| unsafe { sys::llama_model_meta_val_str_by_index(self.as_ptr(), index, buffer, size) });
        key.zip(value)
    }

    pub(crate) fn chat_template(&self, name: Option<&str>) -> Option<String> {
        let name = name.map(c_string).transpose().ok()?;
        let name = name.as_ref().map_or(std::ptr::null(), |name| name.as_ptr());
        // SAFETY: returns null or a string that the model owns; it is copied at once.
        let template = unsafe { text(sys::llama_model_chat_template(self.as_ptr(), name)) };
        (!template.is_empty()).then_some(template)
    }

    /// Layers of the target that a dependent draft reads.
    pub(crate) fn target_layers(&self) -> Result<Vec<i32>, Failed> {
        // SAFETY: the function writes at most `capacity` elements.
        fill(8, |buffer, capacity, needed| unsafe { sys::lsys_target_layers(self.as_ptr(), buffer, capacity, needed) })
    }

    /// Calls a function of the snprintf kind: the whole length comes back, -1 means there is nothing.
    fn text(&self, function: impl Fn(*mut c_char, usize) -> i32) -> Option<String> {
        let mut buffer = vec![0u8; 256];
        loop {
            let length = usize::try_from(function(buffer.as_mut_ptr().cast(), buffer.len())).ok()?;
            if length < buffer.len() {
                buffer.truncate(length);
                return Some(String::from_utf8_lossy(&buffer).into_owned());
            }
            buffer.resize(length + 1, 0);
        }
    }
}

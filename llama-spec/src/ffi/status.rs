//! The one funnel through which results of the C side become `Result`.

use super::log::Capture;
use crate::error::Failure;
use llama_sys as sys;
use std::ffi::{CStr, CString};

/// A call that did not end in `LSYS_OK`.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) status: sys::lsys_status,
    pub(crate) failure: Failure,
}

impl Failed {
    /// Whether llama.cpp said no without an error: the memory cannot shift, there is no template, ...
    pub(crate) fn is_refusal(&self) -> bool {
        self.status == sys::LSYS_FAILED
    }

    /// Whether there were logits that cannot be used.
    pub(crate) fn is_not_finite(&self) -> bool {
        self.status == sys::LSYS_NOT_FINITE
    }

    /// Whether the arguments were refused before anything was done.
    pub(crate) fn is_before_the_call(&self) -> bool {
        self.status == sys::LSYS_INVALID
    }
}

impl From<Failed> for Failure {
    fn from(failed: Failed) -> Self {
        failed.failure
    }
}

/// Runs a call of the shim and attaches what llama.cpp logged meanwhile on this thread.
pub(crate) fn call(function: impl FnOnce() -> sys::lsys_status) -> Result<(), Failed> {
    let capture = Capture::start();
    let status = function();
    if status == sys::LSYS_OK {
        return Ok(());
    }
    // SAFETY: shim.h: lsys_last_error never returns null, and the text lives until this thread's next failing call.
    let message = unsafe { CStr::from_ptr(sys::lsys_last_error()) }.to_string_lossy().into_owned();
    Err(Failed { status, failure: Failure { message, log: capture.finish() } })
}

/// A string for C. A NUL inside ends it there as far as C can see, so it is refused.
pub(crate) fn c_string(text: &str) -> Result<CString, Failure> {
    CString::new(text).map_err(|_| Failure::new("the text contains a NUL character"))
}

/// A text the C side made, copied out and freed.
pub(crate) fn take_text(
    function: impl FnOnce(*mut *mut sys::lsys_text) -> sys::lsys_status,
) -> Result<Vec<u8>, Failed> {
    let mut text = std::ptr::null_mut();
    call(|| function(&mut text))?;
    // SAFETY: the call succeeded, so `text` is a live lsys_text that holds `size` bytes at `data`; it is freed once, here.
    unsafe {
        let (data, size) = (sys::lsys_text_data(text).cast::<u8>(), sys::lsys_text_size(text));
        let copy = if size == 0 { Vec::new() } else { std::slice::from_raw_parts(data, size).to_vec() };
        sys::lsys_text_free(text);
        Ok(copy)
    }
}

/// Calls a function that reports how many elements it has, until the buffer is large enough.
pub(crate) fn fill<T: Clone + Default>(
    guess: usize,
    mut function: impl FnMut(*mut T, usize, *mut usize) -> sys::lsys_status,
) -> Result<Vec<T>, Failed> {
    let mut buffer = vec![T::default(); guess];
    loop {
        let mut needed = 0;
        call(|| function(buffer.as_mut_ptr(), buffer.len(), &mut needed))?;
        let fits = needed <= buffer.len();
        buffer.resize(needed, T::default());
        if fits {
            return Ok(buffer);
        }
    }
}

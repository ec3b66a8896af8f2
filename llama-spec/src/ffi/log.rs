//! The log of llama.cpp: every message becomes a `tracing` event, and those of a running call are kept for its error.

use llama_sys as sys;
use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Once;

/// The target of all events that come from llama.cpp.
pub(crate) const TARGET: &str = "llama.cpp";

/// Lines kept for one call; more than enough to see the cause, and no memory to speak of.
const KEPT: usize = 64;

#[derive(Default)]
struct Thread {
    /// How many calls are being captured; calls nest when one wrapper uses another.
    captures: usize,
    kept: Vec<String>,
    /// The beginning of a line that is still to be continued.
    partial: String,
    partial_level: sys::ggml_log_level,
}

thread_local! {
    static THREAD: RefCell<Thread> = RefCell::default();
}

/// Collects the warnings and errors this thread logs while it lives.
pub(crate) struct Capture {
    start: usize,
}

impl Capture {
    pub(crate) fn start() -> Self {
        THREAD.with_borrow_mut(|thread| {
            thread.captures += 1;
            Self { start: thread.kept.len() }
        })
    }

    pub(crate) fn finish(self) -> Vec<String> {
        THREAD.with_borrow_mut(|thread| thread.kept.split_off(self.start.min(thread.kept.len())))
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        THREAD.with_borrow_mut(|thread| {
            thread.captures -= 1;
            if thread.captures == 0 {
                thread.kept.clear();
            }
        });
    }
}

/// Sends llama.cpp's log to `tracing`, once for the process.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let trace = tracing::enabled!(target: TARGET, tracing::Level::DEBUG);
        // SAFETY: `on_message` is a function of the program, valid for its whole life, and uses no user data.
        unsafe { sys::lsys_log_set(Some(on_message), std::ptr::null_mut(), trace) };
    });
}

/// Called from any thread of llama.cpp. Must not unwind: the subscriber's code is foreign, so a panic in it is dropped.
unsafe extern "C" fn on_message(level: sys::ggml_log_level, text: *const c_char, _: *mut c_void) {
    if text.is_null() {
        return;
    }
    // SAFETY: ggml.h: the callback gets a NUL-terminated text that lives during the call.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let _ = std::panic::catch_unwind(|| {
        for line in complete_lines(level, &text) {
            emit(line.0, &line.1);
        }
    });
}

/// Puts pieces of lines together; a line is complete at its line feed.
fn complete_lines(level: sys::ggml_log_level, text: &str) -> Vec<(sys::ggml_log_level, String)> {
    THREAD.with_borrow_mut(|thread| {
        let mut lines = Vec::new();
        if level != sys::GGML_LOG_LEVEL_CONT {
            flush(thread, &mut lines);
            thread.partial_level = level;
        }
        for piece in text.split_inclusive('\n') {
            thread.partial.push_str(piece.trim_end_matches('\n'));
            if piece.ends_with('\n') {
                flush(thread, &mut lines);
            }
        }
        lines
    })
}

fn flush(thread: &mut Thread, lines: &mut Vec<(sys::ggml_log_level, String)>) {
    let line = std::mem::take(&mut thread.partial);
    // Progress dots are a bar for a terminal; there is a callback for progress.
    if line.trim_matches(|c: char| c == '.' || c.is_whitespace()).is_empty() {
        return;
    }
    let severe = matches!(thread.partial_level, sys::GGML_LOG_LEVEL_WARN | sys::GGML_LOG_LEVEL_ERROR);
    if severe && thread.captures > 0 && thread.kept.len() < KEPT {
        thread.kept.push(line.clone());
    }
    lines.push((thread.partial_level, line));
}

fn emit(level: sys::ggml_log_level, line: &str) {
    match level {
        sys::GGML_LOG_LEVEL_ERROR => tracing::error!(target: TARGET, "{line}"),
        sys::GGML_LOG_LEVEL_WARN => tracing::warn!(target: TARGET, "{line}"),
        sys::GGML_LOG_LEVEL_DEBUG => tracing::trace!(target: TARGET, "{line}"),
        // llama.cpp's "info" is pages about every load: debug for a library.
        _ => tracing::debug!(target: TARGET, "{line}"),
    }
}

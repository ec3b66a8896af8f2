//! Ctrl-C: the first one ends what is running in an orderly way, a second one ends the program.

use crate::failure::Failure;
use std::sync::atomic::{AtomicU8, Ordering};

/// What the program is doing, for the handler, which runs in a thread of its own.
static STATE: AtomicU8 = AtomicU8::new(WAITING);

/// Reading input; there is nothing to end but the program.
const WAITING: u8 = 0;
/// A line editor reads the terminal and sees Ctrl-C as a key; the terminal is in its hands.
const EDITING: u8 = 1;
/// Loading or generating.
const RUNNING: u8 = 2;
/// As `RUNNING`, and Ctrl-C came.
const STOPPING: u8 = 3;

/// The exit status of a program that Ctrl-C ended.
const STATUS: i32 = 130;

/// Sets the handler, once in a program.
///
/// # Errors
/// When the system refuses.
pub fn install() -> Result<(), Failure> {
    let handler = || {
        let stop = |state| match state {
            RUNNING => Some(STOPPING),
            EDITING => Some(EDITING),
            _ => None,
        };
        if STATE.fetch_update(Ordering::SeqCst, Ordering::SeqCst, stop).is_err() {
            std::process::exit(STATUS);
        }
    };
    ctrlc::set_handler(handler).map_err(|error| Failure::Other(format!("cannot handle Ctrl-C: {error}")))
}

/// Something begins that Ctrl-C is to end.
pub fn running() {
    STATE.store(RUNNING, Ordering::SeqCst);
}

/// Nothing is running: Ctrl-C ends the program.
pub fn waiting() {
    STATE.store(WAITING, Ordering::SeqCst);
}

/// A line editor is running.
pub fn editing() {
    STATE.store(EDITING, Ordering::SeqCst);
}

/// Whether Ctrl-C came since [`running`].
pub fn requested() -> bool {
    STATE.load(Ordering::SeqCst) == STOPPING
}

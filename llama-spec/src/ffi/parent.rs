//! Ending together with the process that started this one.

/// Has the system end this process by force when the thread that started it is gone, which also reaches one that is stopped.
/// Where that is not possible, a process sees the end of its input.
#[cfg(target_os = "linux")]
pub(crate) fn die_with_it() {
    use std::ffi::{c_int, c_ulong};
    const PR_SET_PDEATHSIG: c_int = 1;
    const SIGKILL: c_ulong = 9;
    // SAFETY: the function of the C library that std is linked with, declared as its header has it.
    unsafe extern "C" {
        fn prctl(option: c_int, ...) -> c_int;
    }
    // SAFETY: this option takes one number and changes nothing in the memory of the process.
    let _done = unsafe { prctl(PR_SET_PDEATHSIG, SIGKILL) };
}

/// Has the system end this process by force when the one that started it is gone: not possible here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn die_with_it() {}

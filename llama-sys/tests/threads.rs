//! The threads that contexts keep from batch to batch can be freed at any time, also while the process ends: an engine may still run
//! in a thread of its own then, and the list of backends be gone.

use std::ffi::c_int;
use std::process::Command;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

static KEPT: AtomicPtr<llama_sys::ggml_threadpool> = AtomicPtr::new(ptr::null_mut());

unsafe extern "C" {
    fn atexit(run: extern "C" fn()) -> c_int;
}

extern "C" fn free_at_exit() {
    let kept = KEPT.load(Ordering::SeqCst);
    assert!(!kept.is_null());
    // SAFETY: shim.h: they come from lsys_threads_new, and no context uses them.
    unsafe { llama_sys::lsys_threads_free(kept) };
    println!("freed at exit");
}

#[test]
#[ignore = "run in a process of its own by the other one"]
fn child() {
    let mut threads = ptr::null_mut();
    // SAFETY: the function lives as long as the process. What is registered first runs last: behind the end of llama.cpp's own
    // lists, which are made by the call that follows.
    unsafe {
        assert_eq!(atexit(free_at_exit), 0);
        assert_eq!(llama_sys::lsys_threads_new(2, &mut threads), llama_sys::LSYS_OK);
    }
    KEPT.store(threads, Ordering::SeqCst);
}

#[test]
fn threads_can_be_freed_while_the_process_ends() {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program).args(["child", "--exact", "--ignored", "--nocapture"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("freed at exit"), "{output:?}");
}

//! What must not compile does not: each file in `ui/` has the compiler's words beside it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::Command;

/// The cases are only checked, never linked. So that their dependencies are not linked either, the test runs in a process of
/// its own that tells the build script of `llama-sys` to compile no C++.
#[test]
fn misuse_does_not_compile() {
    let this = std::env::current_exe().expect("a test knows its own file");
    let cases =
        Command::new(this).args(["cases", "--exact", "--ignored"]).env("LLAMA_SYS_SKIP_NATIVE", "1").output().unwrap();
    let said = String::from_utf8_lossy(&cases.stdout) + String::from_utf8_lossy(&cases.stderr);
    assert!(cases.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn cases() {
    trybuild::TestCases::new().compile_fail("ui/*.rs");
}

//! Looks for memory errors and leaks: load, generate and drop, again and again, under AddressSanitizer.

use crate::run::{Run, Variables, say, target};
use crate::tools::{self, Origin};
use crate::vendor::host;
use anyhow::{Result, ensure};

/// Builds everything with the sanitizer, in a folder of its own, and runs the lifecycle tests.
pub(crate) fn check(origin: Origin) -> Result<()> {
    ensure!(cfg!(target_os = "linux"), "memcheck runs on Linux only");
    let host = host()?;
    let mut variables = tools::native(origin)?;
    variables.extend(sanitizer(&host));
    say("building with AddressSanitizer: the first time about ten minutes on two cores");
    Run::cargo()
        // With a target named, the flags for the linker leave build scripts alone.
        .args(["test", "--package", "llama-spec-tests", "--test", "lifecycle", "--target", &host])
        .envs(&variables)
        .cure("the report of AddressSanitizer, if there is one above, says where")
        .run()?;
    say("no memory error and no leak");
    Ok(())
}

/// C and C++ are instrumented, llama.cpp (CMake takes these flags too) and the shim alike. Rust code is not, but its
/// allocations go through the sanitizer's malloc, so its leaks and its misuse by C are seen.
fn sanitizer(host: &str) -> Variables {
    let flags = "-fsanitize=address -fno-omit-frame-pointer";
    let triple = host.replace('-', "_");
    let mut variables: Variables = vec![
        ("CARGO_TARGET_DIR".into(), target("asan").into()),
        // rustc tells the linker to leave out default libraries, and GCC then leaves out the sanitizer's as well.
        ("RUSTFLAGS".into(), "-C link-arg=-fsanitize=address -C default-linker-libraries".into()),
        ("ASAN_OPTIONS".into(), "detect_leaks=1".into()),
    ];
    variables.extend(["CFLAGS", "CXXFLAGS"].map(|name| (format!("{name}_{triple}"), flags.into())));
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_for_the_target_is_instrumented() {
        let variables = sanitizer("x86_64-unknown-linux-gnu");
        let names: Vec<_> = variables.iter().map(|(name, _)| name.as_str()).collect();
        assert!(names.contains(&"CXXFLAGS_x86_64_unknown_linux_gnu"), "{names:?}");
        assert!(!names.contains(&"CXXFLAGS"), "build scripts would be instrumented too");
    }
}

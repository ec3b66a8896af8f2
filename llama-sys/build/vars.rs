//! Every environment variable this script reads. Reading one announces it to Cargo.

use std::env;

/// A checkout of llama.cpp to build instead of the pinned one.
pub(crate) const SOURCE_DIR: &str = "LLAMA_SYS_SOURCE_DIR";
/// With feature `dynamic`: the folder of the installed libraries.
pub(crate) const LIB_DIR: &str = "LLAMA_SYS_LIB_DIR";
/// Further arguments for CMake, separated by spaces; they win over this script's own.
pub(crate) const CMAKE_ARGS: &str = "LLAMA_SYS_CMAKE_ARGS";
/// Set to 1 to make bindings only: nothing is compiled and nothing can be linked (documentation, clippy).
pub(crate) const SKIP_NATIVE: &str = "LLAMA_SYS_SKIP_NATIVE";
/// Set by the documentation host.
pub(crate) const DOCS_RS: &str = "DOCS_RS";
/// The CUDA toolkit, if it is not in a usual folder.
pub(crate) const CUDA_PATH: &str = "CUDA_PATH";
/// The CUDA compiler, if it is not on the path; CMake's own variable.
pub(crate) const CUDACXX: &str = "CUDACXX";
/// The CMake program, if it is not on the path; the variable of the `cmake` crate.
pub(crate) const CMAKE: &str = "CMAKE";

pub(crate) fn get(name: &str) -> Option<String> {
    println!("cargo:rerun-if-env-changed={name}");
    env::var(name).ok().filter(|value| !value.is_empty())
}

pub(crate) fn is_set(name: &str) -> bool {
    get(name).is_some_and(|value| value != "0")
}

/// A variable that Cargo always sets.
pub(crate) fn required(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("Cargo sets {name} for every build script"))
}

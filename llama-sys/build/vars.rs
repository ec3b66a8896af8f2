//! Every environment variable this script reads. Reading one announces it to Cargo. The README says what each is for.

pub(crate) const SOURCE_DIR: &str = "LLAMA_SYS_SOURCE_DIR";
pub(crate) const LIB_DIR: &str = "LLAMA_SYS_LIB_DIR";
pub(crate) const CMAKE_ARGS: &str = "LLAMA_SYS_CMAKE_ARGS";
pub(crate) const SKIP_NATIVE: &str = "LLAMA_SYS_SKIP_NATIVE";
pub(crate) const DOCS_RS: &str = "DOCS_RS";
pub(crate) const CUDA_PATH: &str = "CUDA_PATH";
pub(crate) const CUDACXX: &str = "CUDACXX";
pub(crate) const CMAKE: &str = "CMAKE";

pub(crate) fn get(name: &str) -> Option<String> {
    println!("cargo:rerun-if-env-changed={name}");
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A variable that Cargo always sets.
pub(crate) fn required(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("Cargo sets {name} for every build script"))
}

pub(crate) fn feature(name: &str) -> bool {
    std::env::var_os(format!("CARGO_FEATURE_{name}")).is_some()
}

/// Whether the machine that is built for, which need not be this one, has this property.
pub(crate) fn target(key: &str, value: &str) -> bool {
    std::env::var(format!("CARGO_CFG_TARGET_{key}")).is_ok_and(|is| is == value)
}

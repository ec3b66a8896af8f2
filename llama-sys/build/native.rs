//! Compiles the library with CMake and the shim with the C++ compiler.

use crate::{source::Source, target, tools, vars};
use std::path::{Path, PathBuf};

/// What each feature switches in ggml.
const SWITCHES: [(bool, &str); 8] = [
    (cfg!(feature = "cuda"), "GGML_CUDA"),
    (cfg!(feature = "metal"), "GGML_METAL"),
    (cfg!(feature = "vulkan"), "GGML_VULKAN"),
    (cfg!(feature = "hip"), "GGML_HIP"),
    (cfg!(feature = "blas"), "GGML_BLAS"),
    (cfg!(feature = "rpc"), "GGML_RPC"),
    (cfg!(feature = "openmp"), "GGML_OPENMP"),
    (cfg!(feature = "native"), "GGML_NATIVE"),
];

/// Parts of the tree that are not needed, most of which the pinned package does not even carry.
const OFF: [&str; 12] = [
    "BUILD_SHARED_LIBS",
    "LLAMA_BUILD_APP",
    "LLAMA_BUILD_EXAMPLES",
    "LLAMA_BUILD_IS_DEV",
    "LLAMA_BUILD_SERVER",
    "LLAMA_BUILD_TESTS",
    "LLAMA_BUILD_TOOLS",
    "LLAMA_OPENSSL",
    "LLAMA_SUBPROCESS",
    "LLAMA_TOOLS_INSTALL",
    "GGML_CCACHE",
    "GGML_CUDA_NCCL",
];

/// The build folder, or nothing when an installed library is linked.
pub(crate) fn library(source: &Source, out: &Path) -> Option<PathBuf> {
    if cfg!(feature = "dynamic") {
        return None;
    }
    let mut config = cmake::Config::new(&source.root);
    config.out_dir(out).profile("Release").build_target("llama-common").define("LLAMA_BUILD_COMMON", "ON");
    OFF.iter().for_each(|option| drop(config.define(option, "OFF")));
    SWITCHES.iter().for_each(|(on, option)| drop(config.define(option, if *on { "ON" } else { "OFF" })));
    if let Some(nvcc) = tools::nvcc().filter(|_| cfg!(feature = "cuda")) {
        config.define("CMAKE_CUDA_COMPILER", &nvcc);
        config.define("CUDAToolkit_ROOT", nvcc.parent().and_then(Path::parent).unwrap_or(&nvcc));
    }
    if target::is_msvc() {
        config.cxxflag("/EHsc");
    }
    vars::get(vars::CMAKE_ARGS)
        .unwrap_or_default()
        .split_whitespace()
        .for_each(|argument| drop(config.configure_arg(argument)));
    Some(config.build().join("build"))
}

pub(crate) fn shim(source: &Source, built: Option<&Path>) {
    println!("cargo:rerun-if-changed=shim");
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").warnings(false).include("shim").files(
        ["log", "core", "memory", "speculative", "sampling", "chat", "fit", "ext", "abi"]
            .map(|name| format!("shim/{name}.cpp")),
    );
    ["include", "ggml/include", "common", "src", "vendor", "vendor/nlohmann", "vendor/sheredom"]
        .iter()
        .for_each(|dir| drop(build.include(source.root.join(dir))));
    if built.is_none() {
        build.define("LLAMA_SHARED", None).define("GGML_SHARED", None).define("GGML_BACKEND_SHARED", None);
    }
    // Not packed into the Rust library, so that the order of the archives on the linker's line is the one in `link.rs`.
    build.cargo_metadata(false).compile("llama_shim");
    println!("cargo:rustc-link-search=native={}", vars::required("OUT_DIR"));
}

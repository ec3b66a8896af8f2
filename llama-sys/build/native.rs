//! Compiles the library with CMake and the shim with the C++ compiler.

use crate::{tools, vars};
use std::path::{Path, PathBuf};

/// Features of this package that switch the option of ggml with the same name.
const SWITCHES: &str = "CUDA METAL VULKAN HIP BLAS RPC OPENMP NATIVE";
/// Parts that are not needed, most of which the pinned package does not even carry.
const OFF: &str = "BUILD_SHARED_LIBS LLAMA_BUILD_APP LLAMA_BUILD_EXAMPLES LLAMA_BUILD_IS_DEV LLAMA_BUILD_SERVER \
                   LLAMA_BUILD_TESTS LLAMA_BUILD_TOOLS LLAMA_OPENSSL LLAMA_SUBPROCESS GGML_CCACHE GGML_CUDA_NCCL";
const SHIM: &str = "log context core vocab memory cells sampler_params grammar forced distribution sampler lookup \
                    drafters drafters_inside speculation nesting chat fit ext abi";
const INCLUDE: &str = "include ggml/include common src vendor vendor/nlohmann vendor/sheredom";

/// The folder of the archives, in the build folder.
pub(crate) const ARCHIVES: &str = "archives";

/// Gives the build folder.
pub(crate) fn library(source: &Path) -> PathBuf {
    let build = Path::new(&vars::required("OUT_DIR")).join("build");
    let mut config = cmake::Config::new(source);
    config.define("CMAKE_ARCHIVE_OUTPUT_DIRECTORY_RELEASE", build.join(ARCHIVES));
    config.profile("Release").build_target("llama-common").define("LLAMA_BUILD_COMMON", "ON");
    OFF.split(' ').for_each(|option| _ = config.define(option, "OFF"));
    for name in SWITCHES.split(' ') {
        config.define(format!("GGML_{name}"), if vars::feature(name) { "ON" } else { "OFF" });
    }
    // gcc 12.2 drops the shape of AMX tiles when it optimises, and quantized models then crash (SIGILL, seen on Linux).
    let flags = ["-mno-amx-int8"].into_iter().filter(|flag| cc::Build::new().is_flag_supported(flag).unwrap_or(false));
    flags.for_each(|flag| _ = config.cflag(flag).cxxflag(flag));
    if let Some(nvcc) = tools::nvcc().filter(|_| vars::feature("CUDA")) {
        config.define("CMAKE_CUDA_COMPILER", &nvcc).define("CUDAToolkit_ROOT", tools::cuda_root(&nvcc));
    }
    vars::get(vars::CMAKE_ARGS).unwrap_or_default().split_whitespace().for_each(|it| _ = config.configure_arg(it));
    config.build();
    build
}

pub(crate) fn shim(source: &Path) {
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").warnings(false).includes(INCLUDE.split(' ').map(|folder| source.join(folder)));
    build.files(SHIM.split(' ').map(|name| format!("shim/{name}.cpp")));
    // As the library itself, also in debug builds: the shim includes files of it and looks at every row of logits.
    build.opt_level(3).define("NDEBUG", None);
    if vars::feature("DYNAMIC") {
        build.define("LLAMA_SHARED", None).define("GGML_SHARED", None).define("GGML_BACKEND_SHARED", None);
    }
    // Not packed into the Rust library: the order on the linker's line must be the one of `link.rs`.
    build.cargo_metadata(false).compile("llama_shim");
}

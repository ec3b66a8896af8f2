//! Tells Cargo what to link, in the order that linkers which read archives once need: users before what they use.

use crate::{tools, vars};
use std::path::Path;

/// The libraries of the build from top to base; a backend that was not built has no archive and is passed over.
const ARCHIVES: &str = "llama-common llama-common-base cpp-httplib llama ggml ggml-cuda ggml-metal ggml-vulkan \
                        ggml-hip ggml-blas ggml-rpc ggml-cpu ggml-base";

/// The shim, the library (as built in this folder, or as installed), and what they stand on.
pub(crate) fn all(built: Option<&Path>) {
    search(Path::new(&vars::required("OUT_DIR")));
    link("static:-bundle", "llama_shim");
    if let Some(build) = built {
        archives(build);
    } else {
        vars::get(vars::LIB_DIR).iter().for_each(|folder| search(folder.as_ref()));
        link("dylib", "llama-common llama ggml ggml-base");
    }
    system();
}

fn archives(build: &Path) {
    let folder = build.join(crate::native::ARCHIVES);
    search(&folder);
    let is_built =
        |name: &str| [format!("lib{name}.a"), format!("{name}.lib")].iter().any(|it| folder.join(it).is_file());
    ARCHIVES.split(' ').filter(|name| is_built(name)).for_each(|name| link("static:-bundle", name));
    // What CMake decided, not what was asked of it.
    let cache = std::fs::read_to_string(build.join("CMakeCache.txt")).unwrap_or_default();
    if let Some(nvcc) = tools::nvcc().filter(|_| vars::feature("CUDA")) {
        let folders = ["lib64", "lib64/stubs", "lib", "lib/stubs", "lib/x64", "lib/x86_64-linux-gnu"];
        folders.iter().for_each(|folder| search(&tools::cuda_root(&nvcc).join(folder)));
        link("dylib", "cublas cublasLt");
        link("static:-bundle", "cudart_static");
        link("dylib", if cache.contains("GGML_CUDA_NO_VMM:BOOL=ON") { "" } else { "cuda" });
    }
    for line in cache.lines().filter(|line| line.starts_with("BLAS_") && line.contains("_LIBRARY:FILEPATH=/")) {
        println!("cargo:rustc-link-arg={}", line.rsplit('=').next().unwrap_or_default());
    }
}

/// The C++ runtime, and the libraries of the operating system and of the backends' drivers.
fn system() {
    let (windows, apple) = (vars::target("OS", "windows"), vars::target("VENDOR", "apple"));
    let (unix, gnu) = (!windows && !apple, !apple && !vars::target("ENV", "msvc"));
    let of = |needed, kind, names| link(kind, if needed { names } else { "" });
    of(vars::feature("VULKAN"), "dylib", if windows { "vulkan-1" } else { "vulkan" });
    of(vars::feature("HIP"), "dylib", "amdhip64 hipblas rocblas");
    of(apple, "framework", "Accelerate Foundation");
    of(apple && vars::feature("METAL"), "framework", "Metal MetalKit");
    of(apple, "dylib", "c++");
    of(gnu, "dylib", "stdc++");
    of(windows, "dylib", "advapi32 ws2_32 shell32 ole32");
    of(unix && vars::feature("OPENMP"), "dylib", "gomp");
    of(unix, "dylib", "pthread m dl");
}

fn link(kind: &str, names: &str) {
    names.split_whitespace().for_each(|name| println!("cargo:rustc-link-lib={kind}={name}"));
}

fn search(folder: &Path) {
    println!("cargo:rustc-link-search=native={}", folder.display());
}

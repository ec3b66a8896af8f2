//! Tells Cargo what to link, in the order that linkers which read archives once need: users before what they use.

use crate::{target, tools, vars};
use std::path::{Path, PathBuf};

/// The libraries of the build from top to base; a backend that was not built has no archive and is passed over.
const ARCHIVES: [&str; 13] = [
    "llama-common",
    "llama-common-base",
    "cpp-httplib",
    "llama",
    "ggml",
    "ggml-cuda",
    "ggml-metal",
    "ggml-vulkan",
    "ggml-hip",
    "ggml-blas",
    "ggml-rpc",
    "ggml-cpu",
    "ggml-base",
];

pub(crate) fn all(built: Option<&Path>) {
    link("static:-bundle", &["llama_shim"]);
    match built {
        Some(build) => archives(build),
        None => {
            vars::get(vars::LIB_DIR).iter().for_each(|dir| search(dir.as_ref()));
            link("dylib", &["llama-common", "llama", "ggml", "ggml-base"]);
        }
    }
    system();
}

fn archives(build: &Path) {
    let mut found = Vec::new();
    let mut folders = vec![build.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
        for path in entries {
            match path.extension().and_then(|extension| extension.to_str()) {
                _ if path.is_dir() => folders.push(path),
                Some("a" | "lib") => found.push(path),
                _ => {}
            }
        }
    }
    for name in ARCHIVES {
        let named = |path: &&PathBuf| {
            path.file_stem().is_some_and(|stem| stem == name || stem == format!("lib{name}").as_str())
        };
        if let Some(folder) = found.iter().find(named).and_then(|path| path.parent()) {
            search(folder);
            link("static:-bundle", &[name]);
        }
    }
    // What CMake decided, not what was asked of it.
    let cache = std::fs::read_to_string(build.join("CMakeCache.txt")).unwrap_or_default();
    if cfg!(feature = "cuda") {
        cuda(!cache.contains("GGML_CUDA_NO_VMM:BOOL=ON"));
    }
    for line in cache.lines().filter(|line| line.starts_with("BLAS_") && line.contains("_LIBRARY:FILEPATH=/")) {
        println!("cargo:rustc-link-arg={}", line.rsplit('=').next().unwrap_or_default());
    }
}

fn cuda(driver: bool) {
    if let Some(root) = tools::nvcc().as_deref().and_then(Path::parent).and_then(Path::parent) {
        let folders =
            ["lib64", "lib", "lib/x64", "lib64/stubs", "targets/x86_64-linux/lib", "targets/x86_64-linux/lib/stubs"];
        folders
            .iter()
            .map(|folder| root.join(folder))
            .filter(|folder| folder.is_dir())
            .for_each(|folder| search(&folder));
    }
    link("dylib", &["cublas", "cublasLt"]);
    link("static:-bundle", &["cudart_static"]);
    if driver {
        link("dylib", &["cuda"]);
    }
}

/// The C++ runtime and the libraries of the operating system and of the backends' drivers.
fn system() {
    let windows = target::os() == "windows";
    if cfg!(feature = "vulkan") {
        link("dylib", &[if windows { "vulkan-1" } else { "vulkan" }]);
    }
    if cfg!(feature = "hip") {
        link("dylib", &["amdhip64", "hipblas", "rocblas"]);
    }
    if target::is_apple() {
        link("framework", &["Accelerate", "Foundation"]);
        link("framework", if cfg!(feature = "metal") { &["Metal", "MetalKit"] } else { &[] });
        link("dylib", &["c++"]);
    } else if windows {
        link("dylib", &["advapi32", "ws2_32", "shell32", "ole32"]);
        link("dylib", if target::is_msvc() { &[] } else { &["stdc++"] });
    } else {
        link("dylib", if cfg!(feature = "openmp") { &["gomp"] } else { &[] });
        link("dylib", &["stdc++", "pthread", "m", "dl", "rt"][..if target::os() == "linux" { 5 } else { 3 }]);
    }
}

fn link(kind: &str, names: &[&str]) {
    names.iter().for_each(|name| println!("cargo:rustc-link-lib={kind}={name}"));
}

fn search(folder: &Path) {
    println!("cargo:rustc-link-search=native={}", folder.display());
}

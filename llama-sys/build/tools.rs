//! Says what is missing before CMake does, in one line that names the cure.

use crate::{target, vars};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn check() -> Result<(), String> {
    let compiler = cc::Build::new().cpp(true).warnings(false).try_get_compiler();
    if !compiler.is_ok_and(|compiler| runs(compiler.path(), if target::is_msvc() { "/?" } else { "--version" })) {
        return Err("llama-sys needs a C++ compiler: install g++ or clang++ (on Windows the Visual Studio build tools), or name one in CXX".into());
    }
    if cfg!(feature = "dynamic") {
        return Ok(());
    }
    if !runs(Path::new(&vars::get(vars::CMAKE).unwrap_or("cmake".into())), "--version") {
        return Err("llama-sys needs CMake 3.18 or newer: install the package `cmake` (or `pip install cmake`), or name the program in CMAKE".into());
    }
    if cfg!(feature = "cuda") && nvcc().is_none() {
        return Err("the feature `cuda` needs the CUDA toolkit: nvcc is neither on the path nor in a usual folder; install the toolkit or set CUDA_PATH to it".into());
    }
    Ok(())
}

/// The CUDA compiler: named in CUDACXX, on the path, below CUDA_PATH, or in the folder where the installer puts it.
pub(crate) fn nvcc() -> Option<PathBuf> {
    let usual: &[&str] =
        if target::os() == "windows" { &[] } else { &["/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda"] };
    let named = vars::get(vars::CUDACXX).map(PathBuf::from);
    let below = vars::get(vars::CUDA_PATH).into_iter().map(PathBuf::from).chain(usual.iter().map(PathBuf::from));
    let candidates = named.into_iter().chain(below.map(|root| root.join("bin/nvcc"))).chain([PathBuf::from("nvcc")]);
    candidates.into_iter().find(|program| runs(program, "--version"))
}

fn runs(program: &Path, argument: &str) -> bool {
    Command::new(program).arg(argument).output().is_ok_and(|output| output.status.success() || target::is_msvc())
}

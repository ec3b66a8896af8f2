//! Says what is missing before CMake does, in one line that names the cure.

use crate::vars;
use std::path::{Path, PathBuf};

pub(crate) fn check() -> Result<(), &'static str> {
    let compiler = cc::Build::new().cpp(true).try_get_compiler();
    if !compiler.is_ok_and(|compiler| compiler.is_like_msvc() || runs(compiler.path())) {
        return Err(
            "llama-sys needs a C++ compiler: install g++, clang++ or the Visual Studio build tools, or set CXX",
        );
    }
    if !vars::feature("DYNAMIC") && !runs(Path::new(&vars::get(vars::CMAKE).unwrap_or("cmake".into()))) {
        return Err("llama-sys needs CMake: install the package cmake (or `pip install cmake`), or set CMAKE to it");
    }
    if vars::feature("CUDA") && nvcc().is_none() {
        return Err("feature `cuda` needs the CUDA toolkit: no nvcc was found; install it or set CUDA_PATH to it");
    }
    Ok(())
}

/// The CUDA compiler: named in CUDACXX, below CUDA_PATH or the usual folders, or on the path.
pub(crate) fn nvcc() -> Option<PathBuf> {
    let usual = ["/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda"].map(PathBuf::from);
    let below = vars::get(vars::CUDA_PATH).map(PathBuf::from).into_iter().chain(usual).map(|root| root.join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = below.chain(std::env::split_paths(&path)).map(|folder| folder.join("nvcc"));
    vars::get(vars::CUDACXX).map(PathBuf::from).into_iter().chain(found).find(|nvcc| runs(nvcc))
}

/// The folder of the toolkit that a compiler belongs to.
pub(crate) fn cuda_root(nvcc: &Path) -> PathBuf {
    nvcc.canonicalize().unwrap_or(nvcc.into()).ancestors().nth(2).unwrap_or(nvcc).to_owned()
}

fn runs(program: &Path) -> bool {
    std::process::Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

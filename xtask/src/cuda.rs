//! Proves the `cuda` feature on a machine without a GPU and without the CUDA toolkit: the compiler and the libraries
//! come as Python packages, everything is built, and the programs must cope with finding no device.

use crate::run::{Run, Variables, prepended, root, say, target};
use crate::tools::{self, Origin};
use crate::{model, programs};
use anyhow::{Context, Result, ensure};
use clap::Args;
use std::path::{Path, PathBuf};

/// CUDA 13.5: the compiler, its parts, and the libraries that the backend links. (cuBLAS depends on nvrtc.)
const PACKAGES: [&str; 7] = [
    "nvidia-cuda-nvcc==13.5.37",
    "nvidia-cuda-crt==13.5.37",
    "nvidia-nvvm==13.5.37",
    "nvidia-cuda-runtime==13.5.37",
    "nvidia-cuda-nvrtc==13.5.37",
    "nvidia-cuda-cccl==13.3.5.0.6",
    "nvidia-cublas==13.10.0.20",
];
/// The same packages and features for every call, so that the kernels are compiled once.
const SELECTION: [&str; 8] = [
    "--package",
    "llama-sys",
    "--package",
    "llama-spec-examples",
    "--package",
    "llama-spec-tests",
    "--features",
    "llama-spec-examples/cuda",
];

/// What `cargo xtask cuda-check` takes.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The GPU architecture to compile kernels for, as CMake names it
    #[arg(long, default_value = "89")]
    arch: String,
    /// Stop when the toolkit is in place and a small program was compiled and linked with it
    #[arg(long)]
    toolkit_only: bool,
}

pub(crate) fn check(options: &Options, origin: Origin) -> Result<()> {
    ensure!(cfg!(all(target_os = "linux", target_arch = "x86_64")), "cuda-check runs on x86-64 Linux only");
    let toolkit = toolkit()?;
    try_out(&toolkit)?;
    if options.toolkit_only {
        return Ok(());
    }
    let model = model::smollm2()?;
    let mut variables = tools::native(origin)?;
    variables.extend(environment(&toolkit, &options.arch)?);
    say("building llama-sys, the programs and the tests with CUDA: about 40 minutes of processor time");
    let programs = programs::build(&variables, &SELECTION)?;
    Run::cargo().args(["test", "--release", "--no-run"]).args(SELECTION).envs(&variables).run()?;
    say("the test that compares the bindings with the library, linked with CUDA:");
    Run::cargo().args(["test", "--release", "--test", "abi"]).args(SELECTION).envs(&variables).run()?;
    starts_without_device(&programs.named("generate")?, &model, &variables)
}

/// Installs the packages, with the names that a toolkit of NVIDIA's own installer has.
fn toolkit() -> Result<PathBuf> {
    let toolkit = tools::pip_install("cuda", &PACKAGES)?.join("nvidia").join("cu13");
    link("lib", &toolkit.join("lib64"))?;
    for entry in std::fs::read_dir(toolkit.join("lib")).context("the CUDA packages hold no folder `lib`")? {
        let file = entry.context("cannot read a folder")?.file_name();
        let file = file.to_string_lossy();
        if let Some((name, _)) = file.split_once(".so.") {
            link(&file, &toolkit.join("lib").join(format!("{name}.so")))?;
        }
    }
    Ok(toolkit)
}

#[cfg(unix)]
fn link(to: &str, at: &Path) -> Result<()> {
    if at.symlink_metadata().is_ok() {
        return Ok(());
    }
    std::os::unix::fs::symlink(to, at).with_context(|| format!("cannot create the link {}", at.display()))
}

#[cfg(not(unix))]
fn link(_: &str, at: &Path) -> Result<()> {
    anyhow::bail!("cannot create the link {} on this system", at.display())
}

/// Compiles and links a few lines with the toolkit: seconds, before forty minutes are spent on the rest.
fn try_out(toolkit: &Path) -> Result<()> {
    let folder = target("cuda").join("try-out");
    crate::run::create_dir(&folder)?;
    let (source, program) = (folder.join("main.cu"), folder.join("main"));
    let text = "#include <cublasLt.h>\n#include <cublas_v2.h>\n#include <cstdio>\n\
        __global__ void twice(float * x) { x[threadIdx.x] *= 2; }\n\
        int main() {\n    int devices = 0;\n    cudaError_t status = cudaGetDeviceCount(&devices);\n\
        \x20   if (status == cudaSuccess && devices > 0) { twice<<<1, 1>>>(nullptr); cublasHandle_t handle; cublasCreate(&handle); }\n\
        \x20   std::printf(\"cublasLt %zu, devices: %d (%s)\\n\", cublasLtGetVersion(), devices, cudaGetErrorString(status));\n}\n";
    std::fs::write(&source, text).with_context(|| format!("cannot write {}", source.display()))?;
    Run::new(toolkit.join("bin").join("nvcc"))
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .args(["-cudart", "static", "-lcublas", "-lcublasLt"])
        .run()?;
    let said = Run::new(&program).envs(&vec![libraries(toolkit)?]).read()?;
    say(format!("the toolkit compiles, links and starts: {}", said.trim()));
    Ok(())
}

fn environment(toolkit: &Path, arch: &str) -> Result<Variables> {
    Ok(vec![
        ("CARGO_TARGET_DIR".into(), target("cuda").into()),
        ("CUDA_PATH".into(), toolkit.into()),
        ("CUDACXX".into(), toolkit.join("bin").join("nvcc").into()),
        // Without the driver's library there is nothing to link virtual memory management against.
        ("LLAMA_SYS_CMAKE_ARGS".into(), format!("-DCMAKE_CUDA_ARCHITECTURES={arch} -DGGML_CUDA_NO_VMM=ON").into()),
        libraries(toolkit)?,
    ])
}

fn libraries(toolkit: &Path) -> Result<(String, std::ffi::OsString)> {
    prepended("LD_LIBRARY_PATH", &[toolkit.join("lib")])
}

/// Without a device: one line about it and an answer from the CPU; asked to use a device: an error.
fn starts_without_device(generate: &Path, model: &Path, variables: &Variables) -> Result<()> {
    let run = |more: &[&str]| {
        let start = Run::new(generate).arg("--model").arg(model).args(["-p", "The sea is", "-n", "16", "--temp", "0"]);
        start.args(more).envs(variables).output()
    };
    let plain = run(&[])?;
    let (said, noted) = (String::from_utf8_lossy(&plain.stdout), String::from_utf8_lossy(&plain.stderr));
    ensure!(plain.status.success(), "generate with CUDA but no device failed ({}):\n{noted}", plain.status);
    ensure!(!said.trim().is_empty(), "generate with CUDA but no device printed no text");
    let about: Vec<_> = noted.lines().filter(|line| line.contains("GPU device")).collect();
    ensure!(about.len() == 1, "expected one line about the missing device, found {}:\n{noted}", about.len());
    say(format!("generate without a device says: {}", about[0].trim()));
    say(format!("and answers from the CPU: {}", said.trim()));
    let refused = run(&["--gpu-layers", "99"])?;
    let why = String::from_utf8_lossy(&refused.stderr);
    ensure!(!refused.status.success(), "`--gpu-layers 99` without a device must be an error");
    ensure!(
        refused.status.code().is_some(),
        "`--gpu-layers 99` without a device ended by a signal ({})",
        refused.status
    );
    say(format!("--gpu-layers 99 is refused ({}): {}", refused.status, why.trim()));
    say(format!("cuda-check passed; the programs are in {}", root().join("target/cuda/release").display()));
    Ok(())
}

//! Finds the tools that building needs, and gets those that are missing.

use crate::run::{Run, Variables, create_dir, prepended, remove, say, target, warn};
use anyhow::{Context, Result, anyhow, bail, ensure};
use std::path::{Path, PathBuf};

/// llama.cpp with CUDA needs 3.18; everything else is content with less.
const CMAKE_AT_LEAST: (u32, u32) = (3, 18);
/// What pip installs where the system has no CMake.
const CMAKE_PACKAGE: &str = "cmake==4.4.5";
const NINJA_PACKAGE: &str = "ninja==1.13.2";
/// The bindings depend on the version, so the system's libclang is never used.
const LIBCLANG_PACKAGE: &str = "libclang==18.1.1";
/// The client that most programs for servers like ours use; tests use the server through it.
const OPENAI_PACKAGE: &str = "openai==3.57.0";
/// Tells tests where that is.
pub(crate) const OPENAI_VARIABLE: &str = "LLAMA_SPEC_TEST_OPENAI";

/// Where missing tools may come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The system's package manager when we may use it, else pip.
    System,
    /// pip only, into `target/tools`; nothing outside the repository changes.
    Pip,
}

/// What a Cargo that builds llama.cpp needs in its environment; gets CMake if there is none.
pub(crate) fn native(origin: Origin) -> Result<Variables> {
    compiler()?;
    let mut variables = Variables::new();
    if let Some(name) = std::env::var_os("CMAKE") {
        let version = cmake_version(Path::new(&name));
        version.with_context(|| format!("CMAKE is set to {}, which is not a CMake that runs", name.display()))?;
        return Ok(variables);
    }
    if cmake_on_path() {
        return generator(variables);
    }
    let pip = target("tools").join("cmake");
    let mut installed = cmake_in(&pip);
    if installed.is_none() {
        say(format!(
            "CMake {}.{} or newer is needed to build llama.cpp and is not here",
            CMAKE_AT_LEAST.0, CMAKE_AT_LEAST.1
        ));
        if origin == Origin::System {
            match system_install(&["cmake", "make"]) {
                Ok(true) if cmake_on_path() => return generator(variables),
                Ok(_) => {}
                Err(why) => warn(format!("{why}; trying pip instead")),
            }
        }
        installed = cmake_in(&pip_install("cmake", &[CMAKE_PACKAGE])?);
    }
    // Not the script that pip puts into `bin`: that one needs PYTHONPATH.
    let program =
        installed.context("the Python package `cmake` carries no program that runs here: install CMake by hand")?;
    variables.push(("CMAKE".into(), program.into()));
    generator(variables)
}

/// What bindgen needs in its environment; gets libclang if it is not in `target/tools` yet.
pub(crate) fn libclang() -> Result<Variables> {
    let installed = pip_install("libclang", &[LIBCLANG_PACKAGE])?;
    let mut variables = vec![("LIBCLANG_PATH".to_owned(), installed.join("clang").join("native").into_os_string())];
    // The package has no headers of the compiler (stddef.h and the like); those of the compiler that is here will do.
    let extra = match std::env::consts::OS {
        "macos" => Run::new("xcrun").arg("--show-sdk-path").read().map(|path| format!("-isysroot {}", path.trim())),
        "windows" => return Ok(variables),
        _ => Run::new("cc").arg("-print-file-name=include").read().map(|path| format!("-isystem {}", path.trim())),
    };
    variables
        .push(("BINDGEN_EXTRA_CLANG_ARGS".into(), extra.context("bindgen needs the headers of a C compiler")?.into()));
    Ok(variables)
}

/// The Python package `openai` with all it needs; gets it if it is not in `target/tools` yet.
pub(crate) fn openai() -> Result<PathBuf> {
    pip_get("openai", &[OPENAI_PACKAGE], &[])
}

/// Sees to it that there is a browser that the tests of the server's page can drive, and installs it where we may.
///
/// # Errors
/// With what to install, if the system's package manager cannot.
pub(crate) fn browser(origin: Origin) -> Result<()> {
    if browser_on_path() {
        return Ok(());
    }
    say("the page of the server is tested in Chromium, which is not here");
    let packages: &[&str] = match manager().map(|manager| manager.program) {
        Some("apt-get") => &["chromium", "chromium-driver"],
        Some("dnf") => &["chromium", "chromedriver"],
        Some("apk") => &["chromium", "chromium-chromedriver"],
        Some("pacman") => &["chromium"],
        _ => &[],
    };
    if origin == Origin::System && !packages.is_empty() {
        let installed = system_install(packages).context("Chromium cannot be installed")?;
        ensure!(!installed || browser_on_path(), "Chromium was installed, and does not run");
        if installed {
            return Ok(());
        }
    }
    bail!(
        "Chromium and chromedriver are needed and not here: install them (chromium and chromium-driver on Debian), or \
         name them in CHROMIUM and CHROMEDRIVER"
    )
}

/// By the same names and variables as the tests.
fn browser_on_path() -> bool {
    let runs = |variable: &str, names: &[&str]| match std::env::var_os(variable) {
        Some(program) => Run::new(program).arg("--version").succeeds(),
        None => names.iter().any(|name| Run::new(name).arg("--version").succeeds()),
    };
    runs("CHROMIUM", &["chromium", "chromium-browser", "google-chrome"]) && runs("CHROMEDRIVER", &["chromedriver"])
}

/// Installs packages below `target/tools/NAME`, without what they depend on, once, and returns that folder.
pub(crate) fn pip_install(name: &str, packages: &[&str]) -> Result<PathBuf> {
    pip_get(name, packages, &["--no-deps"])
}

fn pip_get(name: &str, packages: &[&str], options: &[&str]) -> Result<PathBuf> {
    let folder = target("tools").join(name);
    let stamp = folder.join("installed.txt");
    let wanted = packages.join("\n");
    if std::fs::read_to_string(&stamp).is_ok_and(|present| present == wanted) {
        return Ok(folder);
    }
    say(format!("getting {} through pip into {}", packages.join(", "), folder.display()));
    let partial = folder.with_extension("partial");
    remove(&partial)?;
    create_dir(&target("tools"))?;
    python()?
        .args(["-m", "pip", "install", "--quiet", "--only-binary", ":all:"])
        .args(options)
        .arg("--target")
        .arg(&partial)
        .args(packages)
        .cure("is the network reachable?")
        .run()?;
    std::fs::write(partial.join("installed.txt"), &wanted).context("cannot mark the installation as complete")?;
    remove(&folder)?;
    std::fs::rename(&partial, &folder).with_context(|| format!("cannot move the packages to {}", folder.display()))?;
    Ok(folder)
}

/// A Python that has pip, ready for its arguments.
pub(crate) fn python() -> Result<Run> {
    let mut seen = None;
    for words in [&["python3"][..], &["python"], &["py", "-3"]] {
        let start = || Run::new(words[0]).args(&words[1..]);
        if start().args(["-m", "pip", "--version"]).succeeds() {
            return Ok(start()
                .env("PIP_DISABLE_PIP_VERSION_CHECK", "1")
                .env("PIP_NO_INPUT", "1")
                .env("PIP_ROOT_USER_ACTION", "ignore")
                .env("PIP_USER", "0"));
        }
        if seen.is_none() && start().arg("--version").succeeds() {
            seen = Some(words[0]);
        }
    }
    Err(match seen {
        Some(name) => {
            anyhow!("{name} has no pip: install it (python3-pip on Debian and Ubuntu, or `{name} -m ensurepip`)")
        }
        None => anyhow!("Python 3 with pip is needed to get what is missing: install python3 and python3-pip"),
    })
}

fn compiler() -> Result<()> {
    if cfg!(windows) || std::env::var_os("CXX").is_some() {
        return Ok(()); // on Windows the build script of llama-sys finds it through the registry
    }
    if ["c++", "g++", "clang++"].iter().any(|name| Run::new(name).arg("--version").succeeds()) {
        return Ok(());
    }
    bail!("no C++ compiler is here: install g++ or clang++ (on macOS `xcode-select --install`), or name one in CXX")
}

fn cmake_on_path() -> bool {
    match cmake_version(Path::new("cmake")) {
        Ok(found) if found >= CMAKE_AT_LEAST => true,
        Ok((major, minor)) => {
            warn(format!("the CMake on the path is {major}.{minor}, too old"));
            false
        }
        Err(_) => false,
    }
}

/// The program inside pip's package, whose place depends on the system.
fn cmake_in(package: &Path) -> Option<PathBuf> {
    ["cmake/data/bin/cmake", "cmake/data/bin/cmake.exe", "cmake/data/CMake.app/Contents/bin/cmake"]
        .iter()
        .map(|place| package.join(place))
        .find(|program| cmake_version(program).is_ok())
}

fn cmake_version(program: &Path) -> Result<(u32, u32)> {
    parse_version(&Run::new(program).arg("--version").read()?)
}

fn parse_version(text: &str) -> Result<(u32, u32)> {
    let numbers = text.split_whitespace().find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
    let mut numbers = numbers.unwrap_or_default().split('.').map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Ok((major, minor)),
        _ => bail!("no version number in {:?}", text.lines().next().unwrap_or_default()),
    }
}

/// CMake itself needs make or ninja to run the compiler.
fn generator(mut variables: Variables) -> Result<Variables> {
    let has = |name: &str| Run::new(name).arg("--version").succeeds();
    if cfg!(windows) || std::env::var_os("CMAKE_GENERATOR").is_some() || has("make") {
        return Ok(variables);
    }
    if !has("ninja") {
        say("CMake needs make or ninja, and neither is here");
        variables.push(prepended("PATH", &[pip_install("ninja", &[NINJA_PACKAGE])?.join("bin")])?);
    }
    variables.push(("CMAKE_GENERATOR".into(), "Ninja".into()));
    Ok(variables)
}

/// One way in which systems install packages.
struct Manager {
    program: &'static str,
    refresh: &'static [&'static str],
    install: &'static [&'static str],
    needs_root: bool,
}

const MANAGERS: [Manager; 5] = [
    Manager {
        program: "apt-get",
        refresh: &["update"],
        install: &["install", "--yes", "--no-install-recommends"],
        needs_root: true,
    },
    Manager { program: "dnf", refresh: &[], install: &["install", "--assumeyes"], needs_root: true },
    Manager { program: "pacman", refresh: &[], install: &["-S", "--noconfirm", "--needed"], needs_root: true },
    Manager { program: "apk", refresh: &[], install: &["add"], needs_root: true },
    Manager { program: "brew", refresh: &[], install: &["install"], needs_root: false },
];

/// The package manager of this system.
fn manager() -> Option<&'static Manager> {
    MANAGERS.iter().find(|manager| Run::new(manager.program).arg("--version").succeeds())
}

/// Whether the packages were installed; not where we may not, which is said.
fn system_install(packages: &[&str]) -> Result<bool> {
    let Some(manager) = manager() else {
        say("no package manager that we know is here");
        return Ok(false);
    };
    let Some(prefix) = (if manager.needs_root { root_prefix() } else { Some(&[][..]) }) else {
        say(format!("{} needs root, which we are not, and `sudo -n` does not help", manager.program));
        return Ok(false);
    };
    say(format!(
        "installing {} with {} (--pip-only would leave the system alone)",
        packages.join(" and "),
        manager.program
    ));
    let run = |arguments: &[&str], packages: &[&str]| {
        let mut words = prefix.iter().copied().chain([manager.program]);
        let program = words.next().unwrap_or(manager.program);
        Run::new(program).args(words).args(arguments).args(packages).env("DEBIAN_FRONTEND", "noninteractive").run()
    };
    if !manager.refresh.is_empty() {
        run(manager.refresh, &[])?;
    }
    run(manager.install, packages)?;
    Ok(true)
}

/// What to put before a command to run it as root without being asked anything.
fn root_prefix() -> Option<&'static [&'static str]> {
    if Run::new("id").arg("-u").read().is_ok_and(|id| id.trim() == "0") {
        return Some(&[]);
    }
    Run::new("sudo").args(["-n", "true"]).succeeds().then_some(&["sudo", "-n"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(parse_version("cmake version 3.25.1\n\nmaintained by Kitware").unwrap(), (3, 25));
        assert_eq!(parse_version("cmake version 4.4.5-rc1").unwrap(), (4, 4));
        assert!(parse_version("command not found").is_err());
        assert!(parse_version("").is_err());
    }

    #[test]
    fn old_versions_are_refused() {
        assert!((3, 17) < CMAKE_AT_LEAST && (3, 18) >= CMAKE_AT_LEAST && (4, 0) >= CMAKE_AT_LEAST);
    }

    #[test]
    fn a_package_without_the_program_is_no_cmake() {
        assert_eq!(cmake_in(Path::new("no/such/folder")), None);
    }
}

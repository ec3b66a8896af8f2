//! A test program with a `main` of its own: it calls the hook of isolated workers before anything else, and plays another part when it
//! is started under another name. Its arguments are those of the usual test programs.

use llama_spec::isolate::hook;
use std::path::{Path, PathBuf};
use std::{env, fs, panic, process};

/// What a program does, by name.
pub(crate) type Named = (&'static str, fn());

/// Plays the part that the program's name stands for, if it is one of `roles`; else runs those of `tests` that the arguments name.
/// After each of them `holds` must be true.
pub(crate) fn run(roles: &[Named], tests: &[Named], holds: fn() -> bool) {
    if let Some(role) = role(roles) {
        return role();
    }
    hook();
    let arguments: Vec<String> = env::args().skip(1).collect();
    let asked = |option: &str| arguments.iter().any(|argument| argument == option);
    let chosen = tests.iter().filter(|(name, _)| !asked("--ignored") && is_chosen(name, &arguments));
    if asked("--list") {
        return chosen.for_each(|(name, _)| println!("{name}: test"));
    }
    let mut failed = 0;
    for (name, test) in chosen {
        let ended = panic::catch_unwind(test).is_ok() && holds();
        println!("test {name} ... {}", if ended { "ok" } else { "FAILED" });
        failed += i32::from(!ended);
    }
    println!("\ntest result: {}. {failed} failed", if failed == 0 { "ok" } else { "FAILED" });
    process::exit(if failed == 0 { 0 } else { 101 });
}

/// What this program does under the name that it was started with, if that is another than its own.
pub(crate) fn role(roles: &[Named]) -> Option<fn()> {
    let name = env::args_os().next().map(PathBuf::from).unwrap_or_default();
    let name = name.file_stem().unwrap_or_default();
    roles.iter().find(|(role, _)| name == *role).map(|(_, role)| *role)
}

/// Whether the arguments name this test.
fn is_chosen(name: &str, arguments: &[String]) -> bool {
    let exact = arguments.iter().any(|argument| argument == "--exact");
    let mut filters = arguments.iter().filter(|argument| !argument.starts_with('-') && *argument != "terse").peekable();
    filters.peek().is_none()
        || filters.any(|filter| if exact { name == filter } else { name.contains(filter.as_str()) })
}

/// This program under another name, in this folder.
pub(crate) fn under_the_name(name: &str, folder: &Path) -> PathBuf {
    let path = folder.join(name).with_extension(env::consts::EXE_EXTENSION);
    let this = env::current_exe().unwrap();
    fs::hard_link(&this, &path).or_else(|_| fs::copy(&this, &path).map(drop)).unwrap();
    path
}

//! From flags, environment and file to one set of settings.

use super::{Flags, print};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs};
use toml::{Table, Value};

/// What an option is called in the environment, before its own name.
const PREFIX: &str = "LLAMA_SPEC_";

/// Options that say where settings come from or what is done with them: they are not in files.
pub(super) const NOT_IN_FILES: [&str; 2] = ["config", "print-config"];

/// What the user wants.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// A server with these settings.
    Serve(Box<Flags>),
    /// To see the settings: a file of them.
    Print(String),
}

/// What a file says: the values of each option by its long name.
pub(super) type Settings = BTreeMap<String, Vec<String>>;

/// Reads the arguments, the first of which is the program's name, the environment, and the file that they name. A flag goes
/// before the environment, that before the file, and that before the default.
///
/// # Errors
/// What is wrong with an option, with where it was given; also for help and version.
pub fn read(args: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Wanted, clap::Error> {
    let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
    // At first only where the file is matters.
    let first = matches(command(&Settings::new(), false), &args)?;
    let settings = match first.get_one::<PathBuf>("config") {
        Some(path) => file(path)?,
        None => Settings::new(),
    };
    let print = first.get_flag("print_config");
    let command = command(&settings, !print);
    let found = matches(command.clone(), &args)?;
    if print {
        return Ok(Wanted::Print(print::file(&command, &found, &settings)));
    }
    Flags::from_arg_matches(&found).map(|flags| Wanted::Serve(Box::new(flags)))
}

/// The options, with what the file says as their defaults.
fn command(settings: &Settings, complete: bool) -> Command {
    Flags::command().mut_args(|arg| {
        let Some(name) = arg.get_long().map(str::to_owned) else { return arg };
        let mut arg = if name == "print-config" { arg } else { switch(arg).env(variable(&name)).hide_env(true) };
        if let Some(values) = settings.get(&name) {
            arg = arg.default_values(values).required(false);
        }
        if complete { arg } else { arg.required(false) }
    })
}

/// A flag that is off unless it is named can also be given as `--flag=false`, against what a file says.
fn switch(arg: Arg) -> Arg {
    if !matches!(arg.get_action(), ArgAction::SetTrue) {
        return arg;
    }
    let arg = arg.action(ArgAction::Set).num_args(0..=1).require_equals(true).value_name("BOOL");
    arg.default_value("false").default_missing_value("true").hide_default_value(true).hide_possible_values(true)
}

/// The variable of an option.
fn variable(name: &str) -> String {
    format!("{PREFIX}{}", name.replace('-', "_").to_uppercase())
}

fn matches(mut command: Command, args: &[OsString]) -> Result<ArgMatches, clap::Error> {
    command.try_get_matches_from_mut(args).map_err(|error| {
        // The message names the flag, which may not have been used.
        let option = match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::String(usage)) => usage.trim_start_matches('-').split([' ', '=', '[']).next(),
            _ => None,
        };
        let Some(option) = option.filter(|option| !is_in(args, option, &command)) else { return error };
        let variable = variable(option);
        match env::var_os(&variable) {
            Some(_) => clap::Error::raw(error.kind(), format!("{variable}: {}", sentence(&error))),
            None => error,
        }
    })
}

/// Whether the option is among the arguments, by its long or its short name.
fn is_in(args: &[OsString], option: &str, command: &Command) -> bool {
    let short = command.get_arguments().find(|arg| arg.get_long() == Some(option)).and_then(Arg::get_short);
    args.iter().skip(1).any(|arg| {
        let arg = arg.to_string_lossy();
        let long = arg.strip_prefix("--").and_then(|arg| arg.split('=').next());
        long == Some(option)
            || short.is_some_and(|short| !arg.starts_with("--") && arg.starts_with(&format!("-{short}")))
    })
}

/// What clap says, without the advice below it.
fn sentence(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    first.strip_prefix("error: ").unwrap_or(first).to_owned()
}

/// What a file says.
fn file(path: &Path) -> Result<Settings, clap::Error> {
    let name = path.display();
    let text = fs::read_to_string(path).map_err(|why| wrong(format!("cannot read {name}: {why}")))?;
    // Never with the line itself, as the parser would have it: there may be a key in it.
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        let line = line.map(|line| format!(" line {line}:")).unwrap_or_default();
        wrong(format!("{name}:{line} {}", error.message()))
    })?;
    let command = command(&Settings::new(), false);
    let mut settings = Settings::new();
    for (key, value) in table {
        let option = key.replace('_', "-");
        if !is_known(&command, &option) {
            return Err(wrong(format!("{name}: unknown key `{key}`; known are {}", known(&command))));
        }
        let values = values(&value).ok_or_else(|| {
            wrong(format!("{name}: `{key}` is neither a text nor a number, true or false, nor a list of these"))
        })?;
        if settings.insert(option.clone(), values).is_some() {
            return Err(wrong(format!("{name}: `{option}` is there twice")));
        }
    }
    // As flags they are held against the same rules.
    let args = settings.iter().flat_map(|(key, values)| values.iter().map(move |value| format!("--{key}={value}")));
    let without_environment = command.mut_args(|arg| arg.env(None::<&str>));
    let checked = without_environment.no_binary_name(true).try_get_matches_from(args);
    checked.map_err(|error| clap::Error::raw(error.kind(), format!("{name}: {}", sentence(&error))))?;
    Ok(settings)
}

fn is_known(command: &Command, option: &str) -> bool {
    command.get_arguments().any(|arg| arg.get_long() == Some(option)) && !NOT_IN_FILES.contains(&option)
}

fn known(command: &Command) -> String {
    let names = command.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(Arg::get_long);
    names.filter(|name| is_known(command, name)).collect::<Vec<_>>().join(", ")
}

fn wrong(sentence: String) -> clap::Error {
    clap::Error::raw(ErrorKind::ValueValidation, sentence)
}

/// A value as it would be written on the command line.
fn values(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Integer(number) => Some(vec![number.to_string()]),
        Value::Float(number) => Some(vec![number.to_string()]),
        Value::Boolean(on) => Some(vec![on.to_string()]),
        Value::Array(list) => list.iter().map(|one| values(one).filter(|_| !one.is_array())?.pop()).collect(),
        Value::Datetime(_) | Value::Table(_) => None,
    }
}

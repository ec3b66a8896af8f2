//! The settings as a file.

use super::layers::{NOT_IN_FILES, Settings};
use clap::builder::ValueParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::any::TypeId;
use std::fmt::Write;
use std::time::Duration;
use toml::Value;

/// Every option with its value and where that comes from. Read as a file, it gives the same settings, keys aside.
pub(super) fn file(command: &Command, matches: &ArgMatches, settings: &Settings) -> String {
    let mut text = String::new();
    let mut heading = None;
    for arg in command.get_arguments() {
        let Some(name) = arg.get_long().filter(|name| !NOT_IN_FILES.contains(name)) else { continue };
        let values: Vec<String> = matches.get_raw(arg.get_id().as_str()).into_iter().flatten().map(lossy).collect();
        if values.is_empty() && arg.is_hide_set() {
            continue;
        }
        if heading != arg.get_help_heading() {
            heading = arg.get_help_heading();
            let before = if text.is_empty() { "" } else { "\n" };
            // Writing to a String does not fail.
            let _ = writeln!(text, "{before}# {}", heading.unwrap_or_default());
        }
        let from = match matches.value_source(arg.get_id().as_str()) {
            Some(ValueSource::CommandLine) => "flag",
            Some(ValueSource::EnvVariable) => "environment",
            Some(_) if settings.contains_key(name) => "file",
            _ => "default",
        };
        let _ = match values.is_empty() {
            true => writeln!(text, "# {name} is not set"),
            // Anything in its place would be a key that everybody knows, once this is read as a file.
            false if name == "api-key" => writeln!(text, "# {name} is set ({} not shown) # {from}", values.len()),
            false => writeln!(text, "{name} = {} # {from}", value(arg, values)),
        };
    }
    text
}

fn lossy(value: &std::ffi::OsStr) -> String {
    value.to_string_lossy().into_owned()
}

fn value(arg: &Arg, values: Vec<String>) -> Value {
    let typed: Vec<Value> = values.into_iter().map(|text| one(arg.get_value_parser(), text)).collect();
    let list = matches!(arg.get_action(), ArgAction::Append);
    match <[Value; 1]>::try_from(typed) {
        Ok([value]) if !list => value,
        Ok(value) => Value::Array(value.into()),
        Err(several) => Value::Array(several),
    }
}

/// A number where the option is one: a name can also look like a number.
fn one(parser: &ValueParser, text: String) -> Value {
    let kind = parser.type_id();
    let is = |types: &[TypeId]| types.iter().any(|one| kind == *one);
    let typed = match () {
        () if is(&[TypeId::of::<u32>(), TypeId::of::<u16>()]) => text.parse().ok().map(Value::Integer),
        () if is(&[TypeId::of::<Duration>()]) => {
            text.parse().map(Value::Integer).or_else(|_| text.parse().map(Value::Float)).ok()
        }
        () if is(&[TypeId::of::<bool>()]) => text.parse().ok().map(Value::Boolean),
        () => None,
    };
    typed.unwrap_or(Value::String(text))
}

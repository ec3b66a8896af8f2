//! What a line of input means: something to say to the model, or a command.

use crate::args::Methods;

/// What the commands do.
pub const HELP: &str = "\
/help            this list
/clear           begin a new conversation; the system message stays
/system TEXT     set the system message; /system shows it, /system - removes it
/undo            take back the last message and its answer
/retry           answer the last message again
/stats           numbers of the whole session
/spec METHODS    speculate in another way from here on, such as ngram-mod or none; /spec shows the way
/quit            leave, as does Ctrl-D
A line that ends with \\ goes on in the next one. // at the beginning of a message stands for /.
Ctrl-C stops an answer; what was said until then stays in the conversation.";

/// A line of input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// An empty line.
    Nothing,
    /// A message for the model.
    Say(String),
    /// Show [`HELP`].
    Help,
    /// Begin a new conversation.
    Clear,
    /// Show the system message.
    ShowSystem,
    /// Set or remove the system message.
    System(Option<String>),
    /// Take the last exchange back.
    Undo,
    /// Answer again.
    Retry,
    /// Show the numbers.
    Stats,
    /// Show how it speculates.
    ShowSpec,
    /// Speculate in another way.
    Spec(Methods),
    /// Leave.
    Quit,
    /// Not a command, and why.
    Wrong(String),
}

impl Command {
    /// Reads a line.
    pub fn parse(line: &str) -> Self {
        let line = line.trim();
        let Some(command) = line.strip_prefix('/') else {
            return if line.is_empty() { Self::Nothing } else { Self::Say(line.to_owned()) };
        };
        if command.starts_with('/') {
            return Self::Say(command.to_owned());
        }
        let (name, argument) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        match (name, argument.trim()) {
            ("system", "") => Self::ShowSystem,
            ("system", "-") => Self::System(None),
            ("system", text) => Self::System(Some(text.to_owned())),
            ("spec", "") => Self::ShowSpec,
            ("spec", methods) => methods.parse().map_or_else(|error| Self::Wrong(format!("{error}")), Self::Spec),
            ("help", "") => Self::Help,
            ("clear", "") => Self::Clear,
            ("undo", "") => Self::Undo,
            ("retry", "") => Self::Retry,
            ("stats", "") => Self::Stats,
            ("quit" | "exit", "") => Self::Quit,
            ("help" | "clear" | "undo" | "retry" | "stats" | "quit" | "exit", _) => {
                Self::Wrong(format!("/{name} takes no argument"))
            }
            _ => Self::Wrong(format!("unknown command /{name}; /help lists them, // begins a message with /")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_messages_or_commands() {
        for (line, command) in [
            ("", Command::Nothing),
            ("  \t", Command::Nothing),
            (" Hello / world ", Command::Say("Hello / world".into())),
            ("//etc/hosts", Command::Say("/etc/hosts".into())),
            ("/help", Command::Help),
            ("/quit ", Command::Quit),
            ("/system", Command::ShowSystem),
            ("/system  Be brief. ", Command::System(Some("Be brief.".into()))),
            ("/system -", Command::System(None)),
            ("/spec none", Command::Spec(Methods(Vec::new()))),
        ] {
            assert_eq!(Command::parse(line), command, "{line:?}");
        }
        for line in ["/", "/hlep", "/undo 2", "/spec ngram", "/spec none,none"] {
            assert!(matches!(Command::parse(line), Command::Wrong(_)), "{line:?}");
        }
    }

    #[test]
    fn the_help_names_every_command() {
        for name in ["/help", "/clear", "/system", "/undo", "/retry", "/stats", "/spec", "/quit"] {
            assert!(HELP.contains(name), "{name}");
        }
    }
}

//! How a program ends: what is said on standard error, always one line, and the exit status.

use crate::output::note;
use clap::Parser;
use console::style;
use llama_spec::compat::Incompatible;
use std::io;
use std::process::ExitCode;

/// Why a program ends without having done its work.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Arguments that make no sense.
    #[error("{0}; try --help")]
    Usage(String),
    /// Something that could not be done.
    #[error("{0}")]
    Other(String),
    /// A refusal of the library.
    #[error("{}", with_advice(.0))]
    Library(#[from] llama_spec::Error),
    /// A text could not be read.
    #[error("cannot read {from}: {source}")]
    Input {
        /// The file, or standard input.
        from: String,
        /// Why not.
        source: io::Error,
    },
    /// A text is not UTF-8.
    #[error("{from} is not valid UTF-8: byte {offset} (counted from 0) begins no character")]
    NotUtf8 {
        /// The file, or standard input.
        from: String,
        /// Where the first wrong byte is.
        offset: usize,
    },
    /// The output could not be written.
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
    /// Whoever read the output has seen enough.
    #[error("nobody reads the output any more")]
    BrokenPipe,
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// Files that do not work together; the report was written. The exit status.
    #[error("see the report")]
    Verdict(u8),
    /// Something that was already told when it happened.
    #[error("see above")]
    Told,
}

impl From<Incompatible> for Failure {
    fn from(why: Incompatible) -> Self {
        Self::Library(why.into())
    }
}

impl Failure {
    /// A failed write to standard output.
    pub fn output(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            _ => Self::Output(error),
        }
    }

    /// The exit status: 2 for wrong usage, 3 for files and settings that do not go together, 4 for a file that is no model,
    /// 130 for Ctrl-C as shells have it, 0 when the reader left, otherwise 1.
    pub fn status(&self) -> u8 {
        use llama_spec::Error;
        match self {
            Self::Usage(_) | Self::Library(Error::Setting { .. } | Error::UnknownMethod { .. }) => 2,
            Self::Library(Error::Incompatible(_) | Error::Speculation { .. }) => 3,
            Self::Verdict(status) => *status,
            Self::Library(
                Error::File { .. }
                | Error::NotGguf { .. }
                | Error::BrokenFile { .. }
                | Error::NotLoadable { .. }
                | Error::Load { .. },
            ) => 4,
            Self::Interrupted | Self::Library(Error::LoadCancelled { .. }) => 130,
            Self::BrokenPipe => 0,
            _ => 1,
        }
    }

    /// Whether a program that could go on with something else must end all the same.
    pub fn ends_program(&self) -> bool {
        matches!(self, Self::Output(_) | Self::BrokenPipe | Self::Input { .. } | Self::Interrupted)
    }

    /// Says it on standard error, on one line, and each check that failed on one more; nothing for what the user did on
    /// purpose.
    pub fn tell(&self) {
        if let Self::Library(llama_spec::Error::Incompatible(why)) = self {
            tell("speculation is not possible with these files and settings");
            return why.checks.iter().for_each(|check| note(&format!("  {}", one_line(&check.to_string()))));
        }
        if !matches!((self, self.status()), (Self::Told | Self::Verdict(_), _) | (_, 0 | 130)) {
            tell(&self.to_string());
        }
    }
}

/// Which option of these programs helps.
fn with_advice(error: &llama_spec::Error) -> String {
    use llama_spec::Error;
    match error {
        Error::PromptTooLong { .. } => format!("{error} (--context N)"),
        _ => error.to_string(),
    }
}

/// Reads the arguments, runs the program and ends it.
pub fn start<A: Parser>(run: impl FnOnce(A) -> Result<(), Failure>) -> ExitCode {
    begin(A::try_parse(), run)
}

/// As [`start`], with arguments that were read already.
pub fn begin<A>(arguments: Result<A, clap::Error>, run: impl FnOnce(A) -> Result<(), Failure>) -> ExitCode {
    let outcome = match arguments {
        Ok(arguments) => run(arguments),
        Err(error) if !error.use_stderr() => {
            // Help or version. Nobody can be told that they could not be written.
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            tell(&usage(&error));
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell();
            ExitCode::from(failure.status())
        }
    }
}

/// Says what is wrong on standard error.
pub(crate) fn tell(sentence: &str) {
    note(&format!("{} {}", style("error:").red().bold().for_stderr(), one_line(sentence)));
}

/// What is wrong with the arguments, without the usage that clap writes below it.
fn usage(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let paragraphs = text.split("\n\n").map(str::trim);
    let told: Vec<_> = paragraphs
        .take_while(|paragraph| !paragraph.starts_with("Usage:") && !paragraph.starts_with("For more information"))
        .collect();
    let told = told.join("; ");
    let sentence = told.strip_prefix("error: ").unwrap_or(&told);
    format!("{sentence}; try --help")
}

/// The text with line breaks and other control characters as spaces: names of files and models may hold anything.
pub fn one_line(text: &str) -> String {
    let spaced = text.replace(|c: char| c.is_control(), " ");
    spaced.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn errors_stay_on_one_line() {
        assert_eq!(one_line("a\n  b\r\n\u{1b}[31mc"), "a b [31mc");
    }

    #[test]
    fn statuses_tell_usage_from_the_rest() {
        let setting = llama_spec::Error::Setting { setting: "x", value: "1".into(), expected: "2".into() };
        let cancelled = llama_spec::Error::LoadCancelled { path: PathBuf::new() };
        for (failure, status) in [
            (Failure::Usage("x".into()), 2),
            (setting.into(), 2),
            (llama_spec::Error::EmptyPrompt.into(), 1),
            (Incompatible { checks: Vec::new() }.into(), 3),
            (llama_spec::Error::NotGguf { path: PathBuf::new(), found: "a text".into() }.into(), 4),
            (cancelled.into(), 130),
            (Failure::Interrupted, 130),
            (Failure::output(io::ErrorKind::BrokenPipe.into()), 0),
            (Failure::output(io::ErrorKind::StorageFull.into()), 1),
        ] {
            assert_eq!(failure.status(), status, "{failure}");
        }
    }
}

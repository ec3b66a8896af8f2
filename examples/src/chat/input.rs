//! Lines from the user: edited, with a history, on a terminal; as they are from a pipe or a file.

use crate::failure::Failure;
use crate::interrupt;
use crate::output::note;
use crate::prompt::utf8;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use std::io::{self, BufRead, IsTerminal};

/// Where lines come from.
#[derive(Debug)]
pub struct Input {
    /// None where input or output is no terminal.
    editor: Option<DefaultEditor>,
    /// Lines read.
    lines: usize,
}

const PROMPT: &str = "> ";
const CONTINUED: &str = "  ";

impl Input {
    /// From standard input.
    ///
    /// # Errors
    /// When the terminal cannot be used.
    pub fn new() -> Result<Self, Failure> {
        let interactive = io::stdin().is_terminal() && io::stdout().is_terminal();
        let editor = interactive.then(DefaultEditor::new).transpose().map_err(terminal)?;
        Ok(Self { editor, lines: 0 })
    }

    /// Whether a person types the lines.
    pub fn is_interactive(&self) -> bool {
        self.editor.is_some()
    }

    /// The next message or command; nothing at the end. A line that ends with a backslash goes on in the next one.
    ///
    /// # Errors
    /// When reading fails, and for a line that is not UTF-8, after which reading can go on.
    pub fn read(&mut self) -> Result<Option<String>, Failure> {
        let mut message = String::new();
        let mut prompt = PROMPT;
        loop {
            let Some(line) = self.line(prompt)? else {
                return Ok(Some(message).filter(|message| !message.is_empty()));
            };
            match line.strip_suffix('\\') {
                Some(part) => message.extend([part, "\n"]),
                None => {
                    message += &line;
                    break;
                }
            }
            prompt = CONTINUED;
        }
        if let Some(editor) = &mut self.editor
            && !message.trim().is_empty()
        {
            editor.add_history_entry(&message).map_err(terminal)?;
        }
        Ok(Some(message))
    }

    fn line(&mut self, prompt: &str) -> Result<Option<String>, Failure> {
        let Some(editor) = &mut self.editor else { return self.plain_line() };
        let mut warned = false;
        interrupt::editing();
        let line = loop {
            match editor.readline(prompt) {
                Ok(line) => break Ok(Some(line)),
                Err(ReadlineError::Interrupted) if !warned => {
                    warned = true;
                    note("Ctrl-C once more leaves; /help lists the commands");
                }
                Err(ReadlineError::Interrupted | ReadlineError::Eof) => break Ok(None),
                Err(error) => break Err(terminal(error)),
            }
        };
        interrupt::waiting();
        line
    }

    fn plain_line(&mut self) -> Result<Option<String>, Failure> {
        let mut bytes = Vec::new();
        interrupt::waiting();
        let read = io::stdin().lock().read_until(b'\n', &mut bytes);
        let unreadable = |source| Failure::Input { from: "standard input".into(), source };
        if read.map_err(unreadable)? == 0 {
            return Ok(None);
        }
        self.lines += 1;
        while bytes.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            bytes.pop();
        }
        utf8(bytes, format!("line {} of standard input", self.lines)).map(Some)
    }
}

fn terminal(error: ReadlineError) -> Failure {
    Failure::Other(format!("cannot read from the terminal: {error}"))
}

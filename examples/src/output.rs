//! The answer on standard output, as it comes, and what is said beside it on standard error.

use crate::colour::Piece;
use crate::failure::Failure;
use console::Style;
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

/// Writes the pieces of an answer to standard output.
#[derive(Debug)]
pub struct Answer {
    terminal: bool,
    /// Something was written and the line is not at its end.
    open_line: bool,
}

impl Answer {
    /// To standard output, as it is now.
    pub fn new() -> Self {
        Self { terminal: io::stdout().is_terminal(), open_line: false }
    }

    /// Writes a piece at once.
    ///
    /// # Errors
    /// [`Failure::BrokenPipe`] when nobody reads it any more, [`Failure::Output`] otherwise.
    pub fn write(&mut self, text: &str, piece: Piece) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        let text = if self.terminal { harmless(text) } else { Cow::Borrowed(text) };
        self.open_line = !text.ends_with('\n');
        let mut out = io::stdout().lock();
        write!(out, "{}", piece.style().apply_to(text)).and_then(|()| out.flush()).map_err(Failure::output)
    }

    /// Ends the line if it is open.
    ///
    /// # Errors
    /// As [`Answer::write`].
    pub fn end_line(&mut self) -> Result<(), Failure> {
        if !std::mem::take(&mut self.open_line) {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        writeln!(out).and_then(|()| out.flush()).map_err(Failure::output)
    }

    /// Ends the line if it is open and a person sees it; a file or a program gets the text and nothing else.
    ///
    /// # Errors
    /// As [`Answer::write`].
    pub fn end_line_on_terminal(&mut self) -> Result<(), Failure> {
        if self.terminal { self.end_line() } else { Ok(()) }
    }
}

impl Default for Answer {
    fn default() -> Self {
        Self::new()
    }
}

/// Writes a line to standard error. If nobody reads that, there is nobody to tell.
pub fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// As [`note`], less bright than the answer.
pub fn aside(text: &str) {
    note(&Style::new().dim().for_stderr().apply_to(text).to_string());
}

/// The text with control characters made visible: a model must not be able to operate the terminal.
fn harmless(text: &str) -> Cow<'_, str> {
    let operates = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(operates) {
        return Cow::Borrowed(text);
    }
    let picture = |c: char| match u32::from(c) {
        0..0x20 => char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER),
        0x7f => '\u{2421}',
        _ => char::REPLACEMENT_CHARACTER,
    };
    Cow::Owned(text.chars().map(|c| if operates(c) { picture(c) } else { c }).collect())
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn a_model_cannot_operate_the_terminal() {
        assert_eq!(harmless("a\u{1b}[2J\u{7f}\u{9b}1m\r"), "a\u{241b}[2J\u{2421}\u{fffd}1m\u{240d}");
        assert_eq!(harmless("caf\u{e9}\n\tx"), "caf\u{e9}\n\tx");
    }
}

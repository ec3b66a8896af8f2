//! Where the prompt comes from: an argument, a file, or standard input.

use crate::failure::Failure;
use crate::output::note;
use clap::Args;
use std::fs;
use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;

/// The text to continue.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Prompt")]
pub struct PromptArgs {
    /// The text to continue; without this and --prompt-file it is read from standard input
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "prompt_file")]
    pub prompt: Option<String>,

    /// A file with the text to continue, in UTF-8. A line feed at its end is left out, as it is of standard input
    #[arg(short = 'f', long, value_name = "FILE")]
    pub prompt_file: Option<PathBuf>,
}

impl PromptArgs {
    /// Reads it.
    ///
    /// # Errors
    /// When it cannot be read, or is not UTF-8.
    pub fn read(&self) -> Result<String, Failure> {
        if let Some(text) = &self.prompt {
            return Ok(text.clone());
        }
        let (from, bytes) = match &self.prompt_file {
            Some(file) => (file.display().to_string(), fs::read(file)),
            None => {
                if io::stdin().is_terminal() {
                    note("Type the text to continue, then Ctrl-D on a line of its own:");
                }
                let mut bytes = Vec::new();
                ("standard input".to_owned(), io::stdin().read_to_end(&mut bytes).map(|_| bytes))
            }
        };
        let bytes = bytes.map_err(|source| Failure::Input { from: from.clone(), source })?;
        utf8(bytes, from).map(without_last_line_feed)
    }
}

/// The bytes as text.
///
/// # Errors
/// [`Failure::NotUtf8`] with the place of the first wrong byte.
pub fn utf8(bytes: Vec<u8>, from: String) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|error| Failure::NotUtf8 { from, offset: error.utf8_error().valid_up_to() })
}

/// Editors and `echo` put one there that nobody means, and it changes how a model goes on.
fn without_last_line_feed(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_feed_is_left_out() {
        for (text, left) in [("a\n", "a"), ("a\r\n", "a"), ("a\n\n", "a\n"), ("a\r", "a\r"), ("\n", ""), ("a", "a")] {
            assert_eq!(without_last_line_feed(text.to_owned()), left, "{text:?}");
        }
    }

    #[test]
    fn the_first_wrong_byte_is_named() {
        let error = utf8(b"caf\xe9!".to_vec(), "menu.txt".into()).unwrap_err();
        assert_eq!(error.to_string(), "menu.txt is not valid UTF-8: byte 3 (counted from 0) begins no character");
    }
}

//! An answer while it is being generated: taken apart by the template's parser, and shown.

use crate::colour::Piece;
use crate::failure::Failure;
use crate::output::Answer;
use llama_spec::chat::{AnswerParser, Content, Delta, Message};
use std::time::{Duration, Instant};

/// The parser reads the whole answer each time, so pieces are collected until parsing has had no more than this part of
/// the time.
const PARSING_SHARE: u32 = 10;

/// Shows an answer and makes a message of it.
#[derive(Debug)]
pub(super) struct AnswerStream<'a> {
    parser: AnswerParser,
    out: &'a mut Answer,
    /// Text that the parser has not seen.
    pending: String,
    /// All text, for an answer that is not in the template's form.
    raw: String,
    /// The answer is not in the template's form, so it is shown as it is.
    formless: bool,
    next_parse: Instant,
    /// What was shown last was reasoning.
    reasoning: bool,
}

impl<'a> AnswerStream<'a> {
    pub(super) fn new(parser: AnswerParser, out: &'a mut Answer) -> Self {
        let (pending, raw) = (String::new(), String::new());
        Self { parser, out, pending, raw, formless: false, next_parse: Instant::now(), reasoning: false }
    }

    /// Adds text, of which `drafted` says whether it was guessed.
    pub(super) fn push(&mut self, text: &str, drafted: bool) -> Result<(), Failure> {
        self.raw += text;
        self.pending += text;
        let parse = !self.pending.is_empty() && Instant::now() >= self.next_parse;
        if parse { self.parse(drafted, false) } else { Ok(()) }
    }

    /// Ends the answer. `complete` says that the model ended it; the parser takes what is cut off as it is.
    pub(super) fn finish(mut self, complete: bool) -> Result<Message, Failure> {
        if complete || !self.pending.is_empty() {
            self.parse(false, complete)?;
        }
        self.out.end_line()?;
        let mut message = match self.formless {
            true => Message::assistant(self.raw),
            false => self.parser.into_message(),
        };
        // Templates need something, also where the model said nothing.
        message.content.get_or_insert_with(|| Content::from(""));
        Ok(message)
    }

    fn parse(&mut self, drafted: bool, last: bool) -> Result<(), Failure> {
        let text = std::mem::take(&mut self.pending);
        if self.formless {
            return self.show(&text, Piece { drafted, reasoning: false });
        }
        let start = Instant::now();
        let parsed = self.parser.feed(&text, last);
        self.next_parse = Instant::now() + start.elapsed().min(Duration::from_secs(1)) * (PARSING_SHARE - 1);
        match parsed {
            Ok(deltas) => deltas.iter().try_for_each(|delta| self.delta(delta, drafted)),
            Err(error) => {
                tracing::warn!(%error, "the answer is shown as it is");
                self.formless = true;
                self.show(&text, Piece { drafted, reasoning: false })
            }
        }
    }

    fn delta(&mut self, delta: &Delta, drafted: bool) -> Result<(), Failure> {
        match delta {
            Delta::Reasoning(text) => self.show(text, Piece { drafted, reasoning: true }),
            Delta::Content(text) => self.show(text, Piece { drafted, reasoning: false }),
            // No tools are offered; a model that calls one all the same is shown doing so.
            Delta::ToolCall { name, arguments, .. } => {
                let called = name.as_ref().map(|name| format!("\n[calls {name}] ")).unwrap_or_default();
                self.show(&(called + arguments), Piece { drafted, reasoning: false })
            }
            _ => Ok(()),
        }
    }

    fn show(&mut self, text: &str, piece: Piece) -> Result<(), Failure> {
        if self.reasoning && !piece.reasoning && !text.is_empty() {
            self.out.end_line()?;
        }
        self.reasoning = piece.reasoning;
        self.out.write(text, piece)
    }
}

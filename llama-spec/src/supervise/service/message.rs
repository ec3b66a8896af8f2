//! Taking the answer of a conversation apart, piece by piece, so that another worker can go on with it.

use crate::chat::{AnswerParser, Content, Delta, Message};

/// With each piece all of the answer is parsed again, so longer answers get longer pieces: at least this part of what is there.
/// The time for an answer then grows with its length, not with the square.
const LEAST_PART: usize = 256;

/// The parser of one answer. What it is fed depends on the tokens alone, so that whoever goes on with the answer has said as
/// much of it.
#[derive(Debug)]
pub(super) struct MessageReader {
    parser: AnswerParser,
    /// Bytes that were fed.
    fed: usize,
    /// Text that was not.
    waiting: String,
    /// Why the answer cannot be read.
    malformed: Option<String>,
    /// Of such an answer: text that went to the content as it is.
    unread: String,
}

/// What became of a conversation's answer.
pub(super) struct Read {
    pub(super) deltas: Vec<Delta>,
    pub(super) message: Message,
    pub(super) malformed: Option<String>,
}

impl MessageReader {
    pub(super) fn new(parser: AnswerParser) -> Self {
        Self { parser, fed: 0, waiting: String::new(), malformed: None, unread: String::new() }
    }

    /// Takes in the texts of tokens whose deltas were told elsewhere.
    pub(super) fn replay(&mut self, texts: &[String]) {
        let (mut all, mut fed) = (String::new(), 0);
        for text in texts {
            all.push_str(text);
            if is_due(all.len() - fed, fed) {
                fed = all.len();
            }
        }
        self.waiting = all.split_off(fed);
        self.fed = fed;
        if fed > 0 {
            // If it cannot be read, the other one has told the text as it is.
            drop(self.parse(&all, false));
        }
    }

    /// Takes in the text of a token, and gives what it added to the message.
    pub(super) fn push(&mut self, text: &str) -> Vec<Delta> {
        self.waiting.push_str(text);
        if !is_due(self.waiting.len(), self.fed) {
            return Vec::new();
        }
        let piece = std::mem::take(&mut self.waiting);
        self.fed += piece.len();
        self.parse(&piece, false)
    }

    /// Takes in the last text.
    pub(super) fn finish(mut self, text: &str) -> Read {
        self.waiting.push_str(text);
        let piece = std::mem::take(&mut self.waiting);
        let deltas = self.parse(&piece, true);
        let mut message = self.parser.into_message();
        if !self.unread.is_empty() {
            let mut content = message.text();
            content.push_str(&self.unread);
            message.content = Some(Content::Text(content));
        }
        Read { deltas, message, malformed: self.malformed }
    }

    fn parse(&mut self, piece: &str, last: bool) -> Vec<Delta> {
        if self.malformed.is_none() {
            match self.parser.feed(piece, last) {
                Ok(deltas) => return deltas,
                Err(error) => self.malformed = Some(super::problem::problem(&error).message),
            }
        }
        if piece.is_empty() {
            return Vec::new();
        }
        self.unread.push_str(piece);
        vec![Delta::Content(piece.to_owned())]
    }
}

fn is_due(waiting: usize, fed: usize) -> bool {
    waiting > 0 && waiting.saturating_mul(LEAST_PART) >= fed
}

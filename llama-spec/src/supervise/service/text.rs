//! What the reader of an answer has not seen yet: the end of its text that is held back.

use crate::runner::StopFinder;
use crate::text::Utf8Stream;
use crate::token::Token;
use crate::vocab::Vocab;

/// Follows an answer token by token, as the engine does.
#[derive(Debug)]
pub(super) struct TextTracker {
    utf8: Utf8Stream,
    /// Control tokens whose text is shown.
    visible: Vec<Token>,
    stops: Vec<String>,
    /// Text that was generated and not shown.
    held: String,
}

impl TextTracker {
    pub(super) fn new(visible: &[Token], stops: &[String]) -> Self {
        let stops = stops.iter().filter(|stop| !stop.is_empty()).cloned().collect();
        Self { utf8: Utf8Stream::default(), visible: visible.to_vec(), stops, held: String::new() }
    }

    /// Takes in tokens that were shown elsewhere; gives the text each of them completed.
    pub(super) fn replay(&mut self, vocab: Vocab<'_>, tokens: &[Token]) -> Vec<String> {
        let mut finder = StopFinder::new(&self.stops);
        let replayed = tokens.iter().map(|token| {
            let text = self.utf8.push(&self.bytes(vocab, *token));
            self.held.push_str(&text);
            let (shown, _) = finder.push(&text);
            self.show(&shown);
            shown
        });
        replayed.collect()
    }

    /// Takes in a token with which this was shown, and gives its bytes.
    pub(super) fn push(&mut self, vocab: Vocab<'_>, token: Token, shown: &str) -> Vec<u8> {
        let bytes = self.bytes(vocab, token);
        let text = self.utf8.push(&bytes);
        self.held.push_str(&text);
        self.show(shown);
        bytes
    }

    /// The stop string that ended the text, with which this was shown last.
    pub(super) fn stop(&mut self, shown: &str) -> Option<String> {
        let rest = self.utf8.finish();
        self.held.push_str(&rest);
        self.show(shown);
        // Of those that begin at the same place, the shortest was complete first.
        self.stops.iter().filter(|stop| self.held.starts_with(stop.as_str())).min_by_key(|stop| stop.len()).cloned()
    }

    fn show(&mut self, shown: &str) {
        if self.held.starts_with(shown) {
            self.held.drain(..shown.len());
        }
    }

    fn bytes(&self, vocab: Vocab<'_>, token: Token) -> Vec<u8> {
        let bytes = match self.visible.contains(&token) {
            true => vocab.bytes_with_special(token),
            false => vocab.bytes(token),
        };
        bytes.unwrap_or_default()
    }
}

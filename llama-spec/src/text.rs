//! Bytes of tokens to text: a character may be spread over several tokens. And text cut at a whole character.

/// Turns pieces of UTF-8 into whole characters.
///
/// ```
/// use llama_spec::text::Utf8Stream;
/// let mut stream = Utf8Stream::default();
/// assert_eq!(stream.push(b"caf\xc3"), "caf");
/// assert_eq!(stream.push(b"\xa9!"), "\u{e9}!");
/// assert_eq!(stream.finish(), "");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Utf8Stream {
    /// The beginning of a character, at most three bytes.
    pending: Vec<u8>,
}

impl Utf8Stream {
    /// Adds bytes and gives the characters that are complete by now. Bytes that can begin no character become U+FFFD.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let mut text = String::new();
        let mut rest = std::mem::take(&mut self.pending);
        loop {
            match std::str::from_utf8(&rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    return text;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    let Some(broken) = error.error_len() else {
                        self.pending = after.to_vec();
                        return text;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest = after[broken..].to_vec();
                }
            }
        }
    }

    /// Whether part of a character is still waiting for the rest.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Ends the stream: part of a character that never came to its end becomes U+FFFD.
    pub fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.pending)).into_owned()
    }
}

/// The beginning of a text that is longer than `most` bytes, cut between characters and with ` ...` behind it; else the text.
///
/// ```
/// use llama_spec::text::shortened;
/// assert_eq!(shortened("caf\u{e9}".into(), 4), "caf ...");
/// assert_eq!(shortened("caf\u{e9}".into(), 5), "caf\u{e9}");
/// ```
pub fn shortened(mut text: String, most: usize) -> String {
    if text.len() > most {
        let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push_str(" ...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However the bytes are cut, the text is what decoding them at once gives.
        #[test]
        fn cuts_do_not_matter(bytes in proptest::collection::vec(any::<u8>(), 0..64), cuts in proptest::collection::vec(0usize..64, 0..8)) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).chain([0, bytes.len()]).collect();
            cuts.sort_unstable();
            let mut stream = Utf8Stream::default();
            let mut text: String = cuts.windows(2).map(|cut| stream.push(&bytes[cut[0]..cut[1]])).collect();
            prop_assert!(stream.pending.len() < 4);
            text += &stream.finish();
            prop_assert_eq!(text, String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}

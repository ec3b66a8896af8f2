//! Vocabularies that give one token a byte: any text goes through them and comes back unchanged.

use crate::gguf::Gguf;

/// Token texts and ids of a model. Every byte has one token; a few special tokens and any number of filler tokens
/// follow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Vocabulary {
    kind: Kind,
    filler: u32,
    add_bos: bool,
}

/// Which tokenizer reads the vocabulary, and in which order the bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The `gpt2` byte-level tokenizer without merges; the token of byte `b` is `b`.
    ByteLevel,
    /// The same tokenizer with the same texts in the opposite order; the token of byte `b` is `255 - b`.
    ReversedByteLevel,
    /// The `llama` (SentencePiece) tokenizer with its byte tokens; the token of byte `b` is `b + 3`. A vocabulary of
    /// another type. The space is the token `▁`, so a literal `▁` does not come back.
    SentencePiece,
}

/// The special tokens; all are control tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Special {
    /// Beginning of sequence, `<s>`.
    Bos,
    /// End of text, `<|endoftext|>` (`</s>` in the SentencePiece vocabulary).
    Eos,
    /// Start of a chat message, `<|im_start|>`.
    MessageStart,
    /// End of a chat message, `<|im_end|>`; ends generation as [`Eos`](Self::Eos) does.
    MessageEnd,
    /// Padding, `<pad>` (the unknown token `<unk>` in the SentencePiece vocabulary).
    Pad,
}

const BYTES: u32 = 256;
/// What `tokenizer.ggml.token_type` calls the types we use.
mod token_type {
    pub(super) const NORMAL: i32 = 1;
    pub(super) const UNKNOWN: i32 = 2;
    pub(super) const CONTROL: i32 = 3;
    pub(super) const BYTE: i32 = 6;
}

impl Vocabulary {
    /// The vocabulary of `kind` without filler tokens, whose tokenizer puts [`Special::Bos`] first where special tokens
    /// are asked for.
    pub fn new(kind: Kind) -> Self {
        Self { kind, filler: 0, add_bos: true }
    }

    /// Adds `count` filler tokens at the end: normal tokens that no text and no zoo model leads to. They make the size
    /// of the vocabulary differ, or realistic.
    pub fn with_filler(mut self, count: u32) -> Self {
        self.filler = count;
        self
    }

    /// Sets whether the tokenizer puts [`Special::Bos`] first where special tokens are asked for.
    pub fn with_bos_added(mut self, add: bool) -> Self {
        self.add_bos = add;
        self
    }

    /// Sets the tokenizer's kind, and keeps the rest.
    pub fn with_kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// The tokenizer's kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether the tokenizer puts [`Special::Bos`] first where special tokens are asked for.
    pub fn adds_bos(&self) -> bool {
        self.add_bos
    }

    /// The number of tokens.
    pub fn size(&self) -> u32 {
        BYTES + Special::ALL.len() as u32 + self.filler
    }

    /// The token of `byte`.
    pub fn token(&self, byte: u8) -> u32 {
        match self.kind {
            Kind::ByteLevel => byte.into(),
            Kind::ReversedByteLevel => (!byte).into(),
            Kind::SentencePiece => u32::from(byte) + SENTENCEPIECE_FIRST_BYTE,
        }
    }

    /// The byte of `token`; `None` for special and filler tokens and for ids beyond the vocabulary.
    pub fn byte(&self, token: u32) -> Option<u8> {
        let index = match self.kind {
            Kind::ByteLevel => token,
            Kind::ReversedByteLevel => 255u32.checked_sub(token)?,
            Kind::SentencePiece => token.checked_sub(SENTENCEPIECE_FIRST_BYTE)?,
        };
        index.try_into().ok()
    }

    /// The id of a special token.
    pub fn special(&self, special: Special) -> u32 {
        let order = match self.kind {
            Kind::ByteLevel | Kind::ReversedByteLevel => [256, 257, 258, 259, 260],
            // bos 1, eos 2 and unknown 0 are where this tokenizer expects them
            Kind::SentencePiece => [1, 2, 259, 260, 0],
        };
        order[special as usize]
    }

    /// The tokens of `text`, one a byte, without [`Special::Bos`] and without looking for special tokens in the text.
    pub fn tokenize(&self, text: impl AsRef<[u8]>) -> Vec<u32> {
        text.as_ref().iter().map(|&byte| self.token(byte)).collect()
    }

    /// The bytes of `tokens`; special and filler tokens give none.
    pub fn bytes(&self, tokens: &[u32]) -> Vec<u8> {
        tokens.iter().filter_map(|&token| self.byte(token)).collect()
    }

    /// The text of `token` as it stands in the file. Panics for ids beyond the vocabulary.
    pub fn text(&self, token: u32) -> String {
        assert!(token < self.size(), "token {token} of {}", self.size());
        if let Some(byte) = self.byte(token) {
            return match self.kind {
                Kind::ByteLevel | Kind::ReversedByteLevel => byte_level_char(byte).to_string(),
                Kind::SentencePiece if byte == b' ' => "\u{2581}".to_owned(),
                Kind::SentencePiece => format!("<0x{byte:02X}>"),
            };
        }
        match Special::ALL.into_iter().find(|special| self.special(*special) == token) {
            Some(special) => self.special_text(special).to_owned(),
            None => format!("filler{token}"),
        }
    }

    /// Adds the tokenizer's metadata to `gguf`.
    pub fn describe(&self, gguf: &mut Gguf<'_>) {
        let tokens = 0..self.size();
        let (model, pre) = match self.kind {
            // A pre-tokenizer that leaves spaces before punctuation alone when text is made of tokens
            Kind::ByteLevel | Kind::ReversedByteLevel => ("gpt2", "smollm"),
            Kind::SentencePiece => ("llama", "default"),
        };
        gguf.set("tokenizer.ggml.model", model)
            .set("tokenizer.ggml.pre", pre)
            .set("tokenizer.ggml.tokens", tokens.clone().map(|token| self.text(token)).collect::<Vec<_>>())
            .set("tokenizer.ggml.token_type", tokens.clone().map(|token| self.token_type(token)).collect::<Vec<_>>());
        match self.kind {
            Kind::ByteLevel | Kind::ReversedByteLevel => gguf.set("tokenizer.ggml.merges", Vec::<String>::new()),
            Kind::SentencePiece => gguf.set("tokenizer.ggml.scores", tokens.map(|_| 0f32).collect::<Vec<_>>()),
        };
        gguf.set("tokenizer.ggml.bos_token_id", self.special(Special::Bos))
            .set("tokenizer.ggml.eos_token_id", self.special(Special::Eos))
            .set("tokenizer.ggml.eot_token_id", self.special(Special::MessageEnd))
            .set("tokenizer.ggml.padding_token_id", self.special(Special::Pad))
            .set("tokenizer.ggml.add_bos_token", self.add_bos)
            .set("tokenizer.ggml.add_eos_token", false)
            .set("tokenizer.ggml.add_space_prefix", false);
    }

    fn token_type(&self, token: u32) -> i32 {
        let sentencepiece = self.kind == Kind::SentencePiece;
        match self.byte(token) {
            Some(byte) if sentencepiece && byte != b' ' => token_type::BYTE,
            Some(_) => token_type::NORMAL,
            None if sentencepiece && token == self.special(Special::Pad) => token_type::UNKNOWN,
            None if Special::ALL.iter().any(|special| self.special(*special) == token) => token_type::CONTROL,
            None => token_type::NORMAL,
        }
    }

    fn special_text(&self, special: Special) -> &'static str {
        match (special, self.kind) {
            (Special::Bos, _) => "<s>",
            (Special::Eos, Kind::SentencePiece) => "</s>",
            (Special::Eos, _) => "<|endoftext|>",
            (Special::MessageStart, _) => "<|im_start|>",
            (Special::MessageEnd, _) => "<|im_end|>",
            (Special::Pad, Kind::SentencePiece) => "<unk>",
            (Special::Pad, _) => "<pad>",
        }
    }
}

/// Ids 0 to 2 are the unknown token, bos and eos.
const SENTENCEPIECE_FIRST_BYTE: u32 = 3;

impl Special {
    /// All special tokens.
    pub const ALL: [Self; 5] = [Self::Bos, Self::Eos, Self::MessageStart, Self::MessageEnd, Self::Pad];
}

/// The character that stands for `byte` in a byte-level vocabulary: printable characters of Latin-1 stand for
/// themselves, the other bytes are numbered from U+0100 on.
fn byte_level_char(byte: u8) -> char {
    let printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    if printable(byte) {
        char::from(byte)
    } else {
        let index = (0..byte).filter(|&other| !printable(other)).count() as u32;
        char::from_u32(0x100 + index).expect("at most 68 bytes are not printable, so this is below U+0144")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const KINDS: [Kind; 3] = [Kind::ByteLevel, Kind::ReversedByteLevel, Kind::SentencePiece];

    #[test]
    fn tokens_texts_and_bytes_map_one_to_one() {
        for kind in KINDS {
            let vocabulary = Vocabulary::new(kind).with_filler(10);
            assert_eq!(vocabulary.size(), 271);
            let texts: HashSet<_> = (0..vocabulary.size()).map(|token| vocabulary.text(token)).collect();
            assert_eq!(texts.len(), 271, "{kind:?}");
            for byte in 0..=255 {
                assert_eq!(vocabulary.byte(vocabulary.token(byte)), Some(byte), "{kind:?}");
            }
            for special in Special::ALL {
                let token = vocabulary.special(special);
                assert_eq!(vocabulary.byte(token), None, "{kind:?} {special:?}");
                assert_eq!(vocabulary.text(token), vocabulary.special_text(special), "{kind:?}");
            }
            for token in 261..vocabulary.size() + 5 {
                assert_eq!(vocabulary.byte(token), None, "{kind:?} {token}");
            }
        }
    }

    #[test]
    fn text_comes_back() {
        let text = "Grüße, 世界! \u{0}\n\t😀";
        for kind in KINDS {
            let vocabulary = Vocabulary::new(kind);
            let tokens = vocabulary.tokenize(text);
            assert_eq!(tokens.len(), text.len());
            assert_eq!(vocabulary.bytes(&tokens), text.as_bytes());
        }
    }

    #[test]
    fn byte_level_characters_are_those_of_gpt2() {
        for (byte, expected) in
            [(b'A', 'A'), (b' ', 'Ġ'), (b'\n', 'Ċ'), (0, 'Ā'), (0x7f, 'ġ'), (0xad, 'Ń'), (0xff, 'ÿ')]
        {
            assert_eq!(byte_level_char(byte), expected, "{byte:#x}");
        }
    }

    #[test]
    fn the_reversed_vocabulary_agrees_on_almost_no_byte() {
        let (one, other) = (Vocabulary::new(Kind::ByteLevel), Vocabulary::new(Kind::ReversedByteLevel));
        assert_eq!(one.size(), other.size());
        assert!((0..256).all(|token| one.text(token) != other.text(token)));
    }
}

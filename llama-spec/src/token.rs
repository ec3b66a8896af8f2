//! Numbers that must not be mixed up: tokens and slots.

use std::fmt;

/// A token of a vocabulary.
///
/// The number alone does not say of which vocabulary; it is checked against the one it is used with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
#[repr(transparent)]
pub struct Token(i32);

impl Token {
    /// The token with this number.
    pub const fn new(id: i32) -> Self {
        Self(id)
    }

    /// Its number.
    pub const fn id(self) -> i32 {
        self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// One of the sequences a context holds side by side. The first is [`Slot::FIRST`]; a context made for `n` slots has the
/// slots `0..n`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slot(pub(crate) u32);

impl Slot {
    /// The first slot, which every context has.
    pub const FIRST: Self = Self(0);

    /// The slot with this index, counted from zero. It is checked against the context it is used with.
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// Its index, counted from zero.
    pub const fn index(self) -> u32 {
        self.0
    }
}

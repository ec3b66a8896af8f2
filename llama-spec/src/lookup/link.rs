//! The way from one place to the one before.

use super::panel::Match;

/// A [`Match`] in the space of one number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Link(u32);

impl Link {
    pub(super) const NONE: Self = Self(0);

    pub(super) fn new(place: Match) -> Self {
        Self(place.length.min(u32::from(u8::MAX)) << 24 | place.end)
    }

    pub(super) fn get(self) -> Option<Match> {
        (self.0 != 0).then_some(Match { end: self.0 & 0xff_ffff, length: self.0 >> 24 })
    }
}

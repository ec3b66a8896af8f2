//! Who puts texts into a store and keeps it within its budget.

use super::segment::{END_OF_TEXT, Segment};
use super::shelf::{Segments, Shared, find};
use super::{StoreSettings, StoreStats};
use crate::token::Token;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Tokens of one segment at most, so that what is dropped at once is not much.
const SEGMENT: usize = 1 << 16;

/// Where a text departs from one that is there, so many tokens before are kept with it, to find it by.
const CONTEXT: usize = 16;

/// All shelves of a store, and what they weigh.
#[derive(Debug)]
pub(super) struct Writer {
    settings: StoreSettings,
    shelves: BTreeMap<Box<str>, Arc<Shared>>,
    /// Shelves without texts are looked for when there are so many.
    sweep_at: usize,
    bytes: usize,
    /// Bytes added since what was saved was halved.
    added: usize,
}

impl Writer {
    pub(super) fn new(settings: StoreSettings) -> Self {
        Self { settings, shelves: BTreeMap::new(), sweep_at: 64, bytes: 0, added: 0 }
    }

    pub(super) fn shelf(&mut self, tenant: &str) -> Arc<Shared> {
        if self.shelves.len() >= self.sweep_at {
            self.shelves.retain(|_, shelf| Arc::strong_count(shelf) > 1 || !shelf.segments().is_empty());
            self.sweep_at = 2 * self.shelves.len() + 64;
        }
        self.shelves.entry(tenant.into()).or_default().clone()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&str, Segments)> {
        self.shelves.iter().map(|(tenant, shelf)| (&**tenant, shelf.segments()))
    }

    pub(super) fn stats(&self) -> StoreStats {
        let mut stats = StoreStats { bytes: self.bytes, ..StoreStats::default() };
        for (_, segments) in self.all() {
            stats.tenants += usize::from(!segments.is_empty());
            stats.segments += segments.len();
            stats.tokens += segments.iter().map(|segment| segment.tokens().len()).sum::<usize>();
            stats.saved += segments.iter().map(|segment| segment.saved()).sum::<u64>();
        }
        stats
    }

    /// What is new in a text, in segments that hold at most a fourth of what there may be.
    pub(super) fn add(&mut self, shelf: &Arc<Shared>, text: &[Token]) {
        let most = SEGMENT.min(self.settings.bytes / 128);
        let new = new_parts(text, &shelf.segments());
        // Less than that is not worth its segment.
        if most > CONTEXT && new.len() > CONTEXT {
            new.chunks(most).for_each(|part| self.put(shelf, part, most));
        }
    }

    /// As it was saved.
    pub(super) fn restore(&mut self, shelf: &Arc<Shared>, tokens: &[Token], saved: u64) {
        let segment = Segment::new(tokens);
        segment.save(saved.saturating_sub(segment.saved()));
        self.seal(shelf, segment);
    }

    /// Adds tokens to the newest segments, as long as these are not much larger, so that there are few and each token is
    /// moved a few times only (the logarithmic method; Bentley and Saxe 1980).
    fn put(&mut self, shelf: &Arc<Shared>, part: &[Token], most: usize) {
        let mut segments = shelf.segments().to_vec();
        let mut tokens = part.to_vec();
        let mut saved = 0;
        let mut bytes = 0;
        while let Some(last) =
            segments.pop_if(|last| last.tokens().len() <= 2 * tokens.len() && last.tokens().len() + tokens.len() < most)
        {
            tokens.splice(0..0, last.tokens().iter().copied().chain([END_OF_TEXT]));
            saved += last.saved();
            bytes += last.bytes();
        }
        shelf.replace(segments.into());
        self.bytes -= bytes;
        let segment = Segment::new(&tokens);
        segment.save(saved);
        self.seal(shelf, segment);
    }

    /// Makes room for a segment and shows it.
    fn seal(&mut self, shelf: &Arc<Shared>, segment: Segment) {
        let bytes = segment.bytes();
        if bytes > self.settings.bytes {
            return;
        }
        self.added += bytes;
        if self.added > self.settings.bytes / 2 {
            self.added = 0;
            self.shelves.values().for_each(|shelf| shelf.segments().iter().for_each(|segment| segment.age()));
        }
        while self.bytes + bytes > self.settings.bytes && self.drop_least() {}
        let segments = shelf.segments();
        shelf.replace(segments.iter().cloned().chain([Arc::new(segment)]).collect());
        self.bytes += bytes;
    }

    /// Drops the segment that saves the fewest tokens for its bytes, the oldest of a tenant among equals.
    fn drop_least(&mut self) -> bool {
        let shelves = self.shelves.values().map(|shelf| (shelf, shelf.segments()));
        let all = shelves.flat_map(|(shelf, segments)| {
            (0..segments.len()).map(move |place| (shelf.clone(), segments.clone(), place))
        });
        let value = |one: &(Arc<Shared>, Segments, usize)| one.1.get(one.2).map_or(0.0, |segment| segment.value());
        let Some((shelf, segments, place)) = all.min_by(|one, other| value(one).total_cmp(&value(other))) else {
            return false;
        };
        self.bytes -= segments.get(place).map_or(0, |segment| segment.bytes());
        let remaining = segments.iter().enumerate().filter(|(other, _)| *other != place);
        shelf.replace(remaining.map(|(_, segment)| segment.clone()).collect());
        true
    }
}

/// The tokens that do not follow a text of these segments anyway.
fn new_parts(text: &[Token], segments: &[Arc<Segment>]) -> Vec<Token> {
    let mut parts = Vec::new();
    let mut followed: Option<(Arc<Segment>, u32)> = None;
    let mut kept = 0;
    for (place, token) in text.iter().enumerate() {
        followed = followed.filter(|(segment, end)| segment.next(*end) == Some(*token));
        if let Some((_, end)) = &mut followed {
            *end += 1;
            continue;
        }
        let context = text.get(place.saturating_sub(CONTEXT).max(kept)..place).unwrap_or_default();
        if kept < place && !parts.is_empty() && context.len() == CONTEXT {
            parts.push(END_OF_TEXT);
        }
        parts.extend(context.iter().chain([token]));
        kept = place + 1;
        let read = text.get(..kept).unwrap_or_default();
        followed = find(segments, read)
            .filter(|(_, found)| found.length as usize >= CONTEXT)
            .map(|(one, found)| (one, found.end));
    }
    parts
}

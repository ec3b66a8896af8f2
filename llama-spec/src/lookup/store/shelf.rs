//! The texts of one tenant, as those see them who look something up.

use super::super::panel::Match;
use super::Store;
use super::segment::Segment;
use crate::token::Token;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// So many segments are asked at most, the newest first.
const ASKED: usize = 16;

/// A match of so many tokens is not looked for any longer.
const ENOUGH: u32 = 16;

/// The segments of a tenant, oldest first.
pub(super) type Segments = Arc<[Arc<Segment>]>;

/// What the handles of one tenant share with the store.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Counts the lists there were, so that a look tells whether there is a new one.
    version: AtomicU64,
    segments: Mutex<Segments>,
}

impl Shared {
    pub(super) fn segments(&self) -> Segments {
        self.segments.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn replace(&self, segments: Segments) {
        *self.segments.lock().unwrap_or_else(PoisonError::into_inner) = segments;
        self.version.fetch_add(1, Ordering::Release);
    }
}

/// A handle to the texts of one tenant in a [`Store`].
#[derive(Clone)]
pub struct Shelf {
    store: Store,
    tenant: Box<str>,
    shared: Arc<Shared>,
    version: u64,
    segments: Segments,
}

impl Shelf {
    pub(super) fn new(store: Store, tenant: &str, shared: Arc<Shared>) -> Self {
        let version = shared.version.load(Ordering::Acquire);
        let segments = shared.segments();
        Self { store, tenant: tenant.into(), shared, version, segments }
    }

    /// Whose texts these are.
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// Keeps a text for those that come later, without the parts that are there already. It takes about a microsecond for a
    /// token; those that look something up do not wait for it.
    pub fn add(&self, text: &[Token]) {
        self.store.add(&self.shared, text);
    }

    /// Where the end of a text stood in another one.
    pub(in super::super) fn find(&mut self, context: &[Token]) -> Option<(Arc<Segment>, Match)> {
        self.refresh();
        find(&self.segments, context)
    }

    /// Takes the newest list, if it can be had without waiting.
    fn refresh(&mut self) {
        let version = self.shared.version.load(Ordering::Acquire);
        if version != self.version
            && let Ok(segments) = self.shared.segments.try_lock()
        {
            self.segments = segments.clone();
            self.version = version;
        }
    }
}

impl fmt::Debug for Shelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shelf").field("tenant", &self.tenant).finish_non_exhaustive()
    }
}

/// The longest match, the newest of those that are as long.
pub(super) fn find(segments: &[Arc<Segment>], context: &[Token]) -> Option<(Arc<Segment>, Match)> {
    let mut best: Option<(&Arc<Segment>, Match)> = None;
    for segment in segments.iter().rev().take(ASKED) {
        if let Some(found) = segment.find(context)
            && best.is_none_or(|(_, best)| found.length > best.length)
        {
            best = Some((segment, found));
            if found.length >= ENOUGH {
                break;
            }
        }
    }
    best.map(|(segment, found)| (segment.clone(), found))
}

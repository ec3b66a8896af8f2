//! A hash table from the last few tokens of a text to where they stood last, without the tokens themselves: whoever asks
//! compares with the text.

/// Ends are kept in so many bits; the rest of a slot is a piece of the hash, which spares most comparisons.
const END_BITS: u32 = 24;
const END_MASK: u32 = (1 << END_BITS) - 1;

/// A text can have so many tokens at most.
pub(super) const MAX_END: usize = END_MASK as usize;

/// Open addressing with linear probing. A slot holds the end of the place (the number of tokens up to and with its last
/// one, so never 0) and 8 bits of the hash; 0 is an empty slot.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    slots: Vec<u32>,
    used: usize,
}

/// On the way to a slot.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Search {
    /// The lowest bits of the hash, where a slot has them.
    tag: u32,
    slot: usize,
    held: u32,
}

impl Table {
    /// Where a search for this hash begins. Searches of several tables that begin together wait for memory together.
    #[inline]
    pub(super) fn begin(&self, hash: u64) -> Search {
        // The upper half of the hash chooses the slot.
        let slot = (((hash >> 32) * self.slots.len() as u64) >> 32) as usize;
        Search { tag: (hash as u32) << END_BITS, slot, held: self.slots.get(slot).copied().unwrap_or(0) }
    }

    /// The end under which something was put that is the `same`, or 0.
    pub(super) fn find(&self, search: Search, same: impl Fn(u32) -> bool) -> u32 {
        self.run(search, same).held & END_MASK
    }

    /// Puts `end` in the place of what is the `same`, and gives the end that was there, or 0. There is room for one more.
    #[inline]
    pub(super) fn replace(&mut self, search: Search, end: u32, same: impl Fn(u32) -> bool) -> u32 {
        let Search { tag, slot, held } = self.run(search, same);
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = tag | (end & END_MASK);
        }
        self.used += usize::from(held == 0);
        held & END_MASK
    }

    /// To the slot of what is the `same`, or to the empty one where it would be. One slot in three is empty.
    #[inline]
    fn run(&self, mut search: Search, same: impl Fn(u32) -> bool) -> Search {
        while search.held != 0 && (search.held & !END_MASK != search.tag || !same(search.held & END_MASK)) {
            search.slot = if search.slot + 1 >= self.slots.len() { 0 } else { search.slot + 1 };
            search.held = self.slots.get(search.slot).copied().unwrap_or(0);
        }
        search
    }

    /// So many more find room.
    pub(super) fn room(&self) -> usize {
        (self.slots.len() * 2 / 3).saturating_sub(self.used)
    }

    /// Makes room for `more`, and for as many again as there are unless it is `for_good`.
    pub(super) fn reserve(&mut self, more: usize, for_good: bool, hash: impl Fn(u32) -> u64) {
        if more <= self.room() {
            return;
        }
        let exact = (self.used + more) * 3 / 2 + 2;
        let slots = if for_good { exact } else { exact.max(self.slots.len() * 2).max(16) };
        let old = std::mem::replace(&mut self.slots, vec![0; slots]);
        self.used = 0;
        for end in old.into_iter().map(|slot| slot & END_MASK).filter(|end| *end != 0) {
            self.replace(self.begin(hash(end)), end, |_| false);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u32>()
    }
}

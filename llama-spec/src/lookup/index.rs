//! Where the end of a text stood before: a table for each of a few lengths, checked against the text itself.

use super::table::{MAX_END, Search, Table};
use crate::token::Token;

/// The hash of tokens `a b c` is `a B^2 + b B + c`, so that it can be had from those of two prefixes (Karp and Rabin 1987,
/// section 3), mixed afterwards.
const BASE: u64 = 0x9e37_79b9_7f4a_7c15;

/// Sums of so many prefixes are kept; no length may reach it.
const RING: usize = 32;

/// A text and, for each of `N` lengths, where every run of so many tokens ended last.
///
/// Ends count the tokens up to and with the last one of a run, so the token that followed is `text()[end]`.
#[derive(Clone, Debug)]
pub(super) struct Index<const N: usize> {
    lengths: [usize; N],
    powers: [u64; N],
    text: Vec<Token>,
    tables: [Table; N],
    sums: [u64; RING],
    found: [u32; N],
    /// So many tokens fit in before a table has to grow.
    room: usize,
}

impl<const N: usize> Index<N> {
    /// For these lengths, in rising order, each less than 32.
    pub(super) fn new(lengths: [usize; N]) -> Self {
        Self {
            lengths,
            powers: lengths.map(power),
            text: Vec::new(),
            tables: std::array::from_fn(|_| Table::default()),
            sums: [0; RING],
            found: [0; N],
            room: 0,
        }
    }

    pub(super) fn text(&self) -> &[Token] {
        &self.text
    }

    /// For each length, where the last so many tokens ended before, or 0.
    #[cfg(test)]
    pub(super) fn found(&self) -> &[u32; N] {
        &self.found
    }

    /// The latest earlier place of the longest of the lengths that was found before: its end and the length.
    pub(super) fn deepest(&self) -> Option<(u32, usize)> {
        let both = self.found.iter().zip(self.lengths).rev();
        both.map(|(end, length)| (*end, length)).find(|(end, _)| *end != 0)
    }

    /// The same for tokens that are not in this text.
    pub(super) fn find(&self, context: &[Token]) -> Option<(u32, usize)> {
        let tables = self.tables.iter().zip(self.lengths).rev();
        tables.into_iter().find_map(|(table, length)| {
            let tail = context.get(context.len().checked_sub(length)?..)?;
            let end = table.find(table.begin(hash(tail)), |end| run(&self.text, end as usize, length) == Some(tail));
            (end != 0).then_some((end, length))
        })
    }

    /// How many of the last tokens of `context` are those before `end` in this text: at least `known`, and `most` is enough.
    pub(super) fn common(&self, context: &[Token], end: u32, known: usize, most: usize) -> usize {
        let before = self.text.get(..(end as usize).saturating_sub(known)).unwrap_or_default();
        let context = context.get(..context.len().saturating_sub(known)).unwrap_or_default();
        let pairs = before.iter().rev().zip(context.iter().rev()).take(most.saturating_sub(known));
        known + pairs.take_while(|(one, other)| one == other).count()
    }

    /// Adds a token. Beyond what can be counted, the text stays as it is and nothing is found in it any more.
    pub(super) fn push(&mut self, token: Token) {
        let before = std::mem::replace(&mut self.found, [0; N]);
        if self.text.len() >= MAX_END {
            return;
        }
        if self.room == 0 {
            self.make_room(1, false);
        }
        self.room = self.room.saturating_sub(1);
        if self.text.len() == self.text.capacity() {
            self.text.reserve_exact(self.text.len() / 4 + 16);
        }
        let end = self.text.len() + 1;
        let sum = |end: usize| if end == 0 { 0 } else { self.sums[end % RING] };
        let now = sum(end - 1).wrapping_mul(BASE).wrapping_add(value(token));
        self.text.push(token);
        let searches: [Search; N] = std::array::from_fn(|place| {
            let older = sum(end.saturating_sub(self.lengths[place]));
            self.tables[place].begin(mix(now.wrapping_sub(older.wrapping_mul(self.powers[place]))))
        });
        for (place, search) in searches.into_iter().enumerate() {
            let length = self.lengths[place];
            if length > end {
                break;
            }
            let text = &self.text;
            // Where a place goes on with the right token, the rest was compared before.
            let next = before[place] + 1;
            let same = |old: u32| {
                (old == next && next > 1 && text.get(old as usize - 1) == Some(&token))
                    || run(text, old as usize, length) == run(text, end, length)
            };
            self.found[place] = self.tables[place].replace(search, end as u32, same);
        }
        self.sums[end % RING] = now;
    }

    /// Adds a token behind the `known` ones for a while, and gives what [`deepest`](Self::deepest) would. The tables do not get to
    /// know of it, so nothing is to be pushed before it is [taken away](Self::forget).
    pub(super) fn assume(&mut self, token: Token, known: usize) -> Option<(u32, usize)> {
        if self.text.len() >= MAX_END {
            return None;
        }
        if self.text.len() == self.text.capacity() {
            self.text.reserve_exact(self.text.len() / 4 + 16);
        }
        self.text.push(token);
        let (text, end) = (&self.text, self.text.len());
        self.tables.iter().zip(self.lengths).rev().find_map(|(table, length)| {
            let tail = run(text, end, length)?;
            let same = |end: u32| run(text, end as usize, length) == Some(tail);
            // The latest first: among what was assumed, then as the table knows it.
            let assumed = (known as u32 + 1..end as u32).rev().find(|end| same(*end));
            let end = assumed.unwrap_or_else(|| table.find(table.begin(hash(tail)), same));
            (end != 0).then_some((end, length))
        })
    }

    /// Takes away what was assumed behind the `known` tokens.
    pub(super) fn forget(&mut self, known: usize) {
        self.text.truncate(known);
    }

    /// Makes room for so many tokens more; `for_good` when hardly more will follow.
    pub(super) fn make_room(&mut self, more: usize, for_good: bool) {
        for (table, length) in self.tables.iter_mut().zip(self.lengths) {
            let text = &self.text;
            table.reserve(more, for_good, |end| run(text, end as usize, length).map_or(0, hash));
        }
        self.room = self.tables.iter().map(Table::room).min().unwrap_or(0);
        if for_good {
            self.text.reserve_exact(more);
        }
    }

    /// Forgets all but the first tokens, as if the others had never been there.
    pub(super) fn truncate(&mut self, length: usize) {
        if length >= self.text.len() {
            return;
        }
        let mut text = std::mem::take(&mut self.text);
        text.truncate(length);
        *self = Self::new(self.lengths);
        self.make_room(text.len(), true);
        text.into_iter().for_each(|token| self.push(token));
    }

    /// Bytes of everything it holds.
    pub(super) fn bytes(&self) -> usize {
        let tables: usize = self.tables.iter().map(Table::bytes).sum();
        size_of::<Self>() + tables + self.text.capacity() * size_of::<Token>()
    }
}

/// The `length` tokens that end at `end`.
fn run(text: &[Token], end: usize, length: usize) -> Option<&[Token]> {
    text.get(end.checked_sub(length)?..end)
}

fn hash(tokens: &[Token]) -> u64 {
    mix(tokens.iter().fold(0, |sum: u64, token| sum.wrapping_mul(BASE).wrapping_add(value(*token))))
}

fn value(token: Token) -> u64 {
    u64::from(token.id() as u32) + 1
}

fn power(exponent: usize) -> u64 {
    (0..exponent).fold(1, |power: u64, _| power.wrapping_mul(BASE))
}

/// Spreads a sum over all bits, with the first multiplier of MurmurHash3's finalizer (Appleby, `fmix64`).
fn mix(sum: u64) -> u64 {
    let sum = (sum ^ (sum >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    sum ^ (sum >> 29)
}

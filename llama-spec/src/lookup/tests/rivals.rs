//! What the n-gram methods of llama.cpp would propose, in the fewest words: slow, and only to compare with.

use std::collections::HashMap;

/// Guesses how a text goes on.
pub(super) trait Rival {
    /// Its name.
    fn name(&self) -> &'static str;
    /// Up to `limit` tokens that may follow.
    fn propose(&mut self, text: &[i32], limit: usize) -> Vec<i32>;
    /// So many of them were right.
    fn outcome(&mut self, _drafted: usize, _accepted: usize) {}
}

/// All five.
pub(super) fn all() -> Vec<Box<dyn Rival>> {
    vec![
        Box::new(Simple),
        Box::new(Keyed { most: false, seen: 0, keys: HashMap::new(), used: None }),
        Box::new(Keyed { most: true, seen: 0, keys: HashMap::new(), used: None }),
        Box::new(Hashed::default()),
        Box::new(Counted::default()),
    ]
}

const N: usize = 12;

type Values = Vec<(i32, usize, usize)>;

/// Copies what followed the last 12 tokens the time before.
struct Simple;

impl Rival for Simple {
    fn name(&self) -> &'static str {
        "ngram-simple"
    }

    fn propose(&mut self, text: &[i32], limit: usize) -> Vec<i32> {
        let Some(start) = text.len().checked_sub(N) else { return Vec::new() };
        let tail = &text[start..];
        let found = (N..text.len()).rev().find(|end| &text[end - N..*end] == tail);
        found.map(|end| text[end..].iter().take(limit).copied().collect()).unwrap_or_default()
    }
}

/// A table of 12 tokens and what followed them. The draft of one key never gets longer again than what was accepted of it.
struct Keyed {
    /// Of several continuations, only one that came twice as often as all others.
    most: bool,
    seen: usize,
    /// For each key, how long its draft may be, and for each continuation the token, where it came last and how often.
    keys: HashMap<Vec<i32>, (Values, usize)>,
    used: Option<Vec<i32>>,
}

impl Rival for Keyed {
    fn name(&self) -> &'static str {
        if self.most { "ngram-map-k4v" } else { "ngram-map-k" }
    }

    fn propose(&mut self, text: &[i32], limit: usize) -> Vec<i32> {
        for end in self.seen.max(N)..text.len() {
            let (values, _) = self.keys.entry(text[end - N..end].to_vec()).or_insert((Vec::new(), usize::MAX));
            match values.iter().position(|value| value.0 == text[end]) {
                Some(known) => (values[known].1, values[known].2) = (end, values[known].2 + 1),
                None if values.len() < 4 => values.push((text[end], end, 1)),
                None => {}
            }
        }
        self.seen = text.len();
        let Some(start) = text.len().checked_sub(N) else { return Vec::new() };
        let Some((values, longest)) = self.keys.get(&text[start..]) else { return Vec::new() };
        let all: usize = values.iter().map(|value| value.2).sum();
        let chosen = if self.most {
            values.iter().max_by_key(|value| value.2).filter(|value| value.2 >= 2 * (all - value.2))
        } else {
            values.iter().max_by_key(|value| value.1)
        };
        self.used = Some(text[start..].to_vec());
        chosen.map(|value| text[value.1..].iter().take(limit.min(*longest)).copied().collect()).unwrap_or_default()
    }

    fn outcome(&mut self, drafted: usize, accepted: usize) {
        if let Some((_, longest)) = self.used.take().and_then(|used| self.keys.get_mut(&used))
            && accepted < drafted
        {
            *longest = accepted;
        }
    }
}

/// From a hash of 24 tokens to the next one.
#[derive(Default)]
struct Hashed {
    seen: usize,
    next: HashMap<Vec<i32>, i32>,
}

impl Rival for Hashed {
    fn name(&self) -> &'static str {
        "ngram-mod"
    }

    fn propose(&mut self, text: &[i32], limit: usize) -> Vec<i32> {
        const N: usize = 24;
        for end in self.seen.max(N)..text.len() {
            self.next.insert(text[end - N..end].to_vec(), text[end]);
        }
        self.seen = text.len();
        let mut all = text.to_vec();
        while all.len() >= N && all.len() < text.len() + limit {
            let Some(next) = self.next.get(&all[all.len() - N..]) else { break };
            all.push(*next);
        }
        all.split_off(text.len())
    }
}

/// Counts of what followed 4, 3, 2 and 1 tokens, the longest one that is clear enough.
#[derive(Default)]
struct Counted {
    seen: usize,
    counts: HashMap<Vec<i32>, HashMap<i32, usize>>,
}

impl Rival for Counted {
    fn name(&self) -> &'static str {
        "ngram-cache"
    }

    fn propose(&mut self, text: &[i32], limit: usize) -> Vec<i32> {
        for end in self.seen..text.len() {
            for n in 1..=4.min(end) {
                *self.counts.entry(text[end - n..end].to_vec()).or_default().entry(text[end]).or_default() += 1;
            }
        }
        self.seen = text.len();
        let mut all = text.to_vec();
        while all.len() < text.len() + limit {
            let clear = [(4, 1, 50), (3, 1, 50), (2, 2, 50), (1, 2, 66)].into_iter().find_map(|(n, samples, share)| {
                let counts = self.counts.get(&all[all.len().checked_sub(n)?..])?;
                let sum: usize = counts.values().sum();
                let (token, most) = counts.iter().max_by_key(|(token, count)| (**count, **token))?;
                (sum >= samples && most * 100 >= share * sum).then_some(*token)
            });
            let Some(token) = clear else { break };
            all.push(token);
        }
        all.split_off(text.len())
    }
}

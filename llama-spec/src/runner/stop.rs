//! Finding stop strings in a stream of text: what may be the beginning of one is held back.

/// Looks for the first of several strings.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopFinder {
    stops: Vec<String>,
    held: String,
}

impl StopFinder {
    pub(crate) fn new(stops: &[String]) -> Self {
        Self { stops: stops.iter().filter(|stop| !stop.is_empty()).cloned().collect(), held: String::new() }
    }

    /// Adds text; gives what can be shown, and whether a stop string was found. It and all after it is not shown.
    pub(crate) fn push(&mut self, text: &str) -> (String, bool) {
        if self.stops.is_empty() {
            return (text.to_owned(), false);
        }
        self.held.push_str(text);
        let found = self.stops.iter().filter_map(|stop| self.held.find(stop.as_str())).min();
        if let Some(start) = found {
            let shown = self.held[..start].to_owned();
            self.held.clear();
            return (shown, true);
        }
        let keep = self.stops.iter().map(|stop| overlap(&self.held, stop)).max().unwrap_or(0);
        let rest = self.held.split_off(self.held.len() - keep);
        (std::mem::replace(&mut self.held, rest), false)
    }

    /// What is still held back at the end of the text.
    pub(crate) fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

/// The length of the longest end of `text` that is a beginning of `stop`.
fn overlap(text: &str, stop: &str) -> usize {
    let longest = text.len().min(stop.len().saturating_sub(1));
    (1..=longest).rev().find(|length| text.as_bytes()[text.len() - length..] == stop.as_bytes()[..*length]).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However the text is cut, what is shown is the text up to the first stop string.
        #[test]
        fn equals_the_search_of_the_whole(pieces in proptest::collection::vec("[ab\u{e9}]{0,3}", 0..12), stops in proptest::collection::vec("[ab\u{e9}]{1,4}", 0..3)) {
            let whole = pieces.concat();
            let mut finder = StopFinder::new(&stops);
            let (mut shown, mut stopped) = (String::new(), false);
            for piece in &pieces {
                let (text, found) = finder.push(piece);
                shown += &text;
                stopped |= found;
                if found {
                    break;
                }
            }
            if !stopped {
                shown += &finder.finish();
            }
            // The stream stops at the piece that completes a stop string, at the leftmost one there is by then.
            let first_end = stops.iter().filter_map(|stop| whole.find(stop.as_str()).map(|at| at + stop.len())).min();
            prop_assert_eq!(stopped, first_end.is_some());
            prop_assert!(whole.starts_with(&shown));
            match first_end {
                None => prop_assert_eq!(shown, whole),
                Some(end) => {
                    prop_assert!(shown.len() < end);
                    prop_assert!(stops.iter().all(|stop| !shown.contains(stop.as_str())));
                    prop_assert!(stops.iter().any(|stop| whole[shown.len()..].starts_with(stop.as_str())));
                }
            }
        }
    }
}

//! Dividing the rows of a batch among the drafts of its texts.

/// The survivals of the drafts of all texts: for each drafted token, how probable it is that it and all before it are
/// right.
///
/// The best `n` of all of them are the best use of `n` rows, and they never leave a gap in a draft, since survival
/// falls along it. So one pass in falling order gives the best division for every number of rows, and what is left is
/// to find the number (the budget search of vLLM's adaptive verification works alike).
#[derive(Debug, Default)]
pub(super) struct Pool {
    survivals: Vec<f64>,
    /// Of each text: where its survivals begin, how many there are, and how many were taken in the pass.
    drafts: Vec<Draft>,
    /// The texts in the order in which they were given rows.
    order: Vec<usize>,
    /// The survival of the next token of each text in a pass.
    heads: Vec<f64>,
    /// What so many rows of drafts bring, from none.
    points: Vec<Point>,
}

#[derive(Clone, Copy, Debug)]
struct Draft {
    start: usize,
    length: usize,
    /// Its tokens cost draft steps, except for so many at its beginning; nothing for a free draft.
    head: Option<usize>,
    taken: usize,
}

/// What verifying the best rows brings and takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    /// Tokens to be expected, the ones of plain decoding included.
    pub(super) tokens: f64,
    /// Seconds of the round.
    pub(super) seconds: f64,
}

impl Point {
    /// What it is worth when a second is worth `price` tokens.
    pub(super) fn worth(&self, price: f64) -> f64 {
        self.tokens - price * self.seconds
    }
}

/// What a division of the rows is, for its time to be told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Division {
    /// Drafted tokens that are verified.
    pub(super) drafted: usize,
    /// The most steps of a costly draft among them.
    pub(super) steps: usize,
    /// How probable it is that some are rejected.
    pub(super) rejected: f64,
}

impl Pool {
    pub(super) fn clear(&mut self) {
        self.survivals.clear();
        self.drafts.clear();
    }

    /// The draft of the next text; what follows are its survivals. All but those of its head cost a step each, if it has one.
    pub(super) fn begin(&mut self, head: Option<usize>) {
        self.drafts.push(Draft { start: self.survivals.len(), length: 0, head, taken: 0 });
    }

    pub(super) fn push(&mut self, survival: f64) {
        if let Some(draft) = self.drafts.last_mut() {
            draft.length += 1;
            self.survivals.push(survival);
        }
    }

    /// The survivals of the last draft.
    pub(super) fn last(&self) -> &[f64] {
        self.drafts.last().map_or(&[], |draft| &self.survivals[draft.start..])
    }

    /// The survivals of the draft of a text.
    pub(super) fn of(&self, text: usize) -> &[f64] {
        self.drafts.get(text).map_or(&[], |draft| &self.survivals[draft.start..][..draft.length])
    }

    /// How many tokens at the beginning of a text's draft cost no step.
    pub(super) fn head(&self, text: usize) -> Option<usize> {
        self.drafts.get(text)?.head
    }

    /// Takes the last draft away.
    pub(super) fn drop_last(&mut self) {
        if let Some(draft) = self.drafts.pop() {
            self.survivals.truncate(draft.start);
        }
    }

    /// Takes the last draft but one away.
    pub(super) fn drop_before_last(&mut self) {
        let Some(last) = self.drafts.pop() else { return };
        if let Some(before) = self.drafts.last_mut() {
            self.survivals.copy_within(last.start.., before.start);
            self.survivals.truncate(before.start + last.length);
            *before = Draft { start: before.start, ..last };
        }
    }

    /// A draft of known survivals for the next text.
    pub(super) fn append(&mut self, survivals: &[f64], head: Option<usize>) {
        self.begin(head);
        if let Some(draft) = self.drafts.last_mut() {
            draft.length = survivals.len();
            self.survivals.extend_from_slice(survivals);
        }
    }

    /// Computes what each number of rows brings, up to `most` of them.
    pub(super) fn pass(&mut self, most: usize, seconds: impl Fn(Division) -> f64) {
        let Self { survivals, drafts, order, heads, points } = self;
        order.clear();
        points.clear();
        let (mut tokens, mut all_right, mut steps) = (drafts.len() as f64, 1.0, 0);
        drafts.iter_mut().for_each(|draft| draft.taken = 0);
        let head = |draft: &Draft| {
            if draft.taken < draft.length { survivals[draft.start + draft.taken] } else { f64::NEG_INFINITY }
        };
        heads.clear();
        heads.extend(drafts.iter().map(head));
        let mut division = Division { drafted: 0, steps, rejected: 0.0 };
        points.push(Point { tokens, seconds: seconds(division) });
        while order.len() < most {
            // Which text it is follows no pattern, so it is looked for without a branch for each.
            let survival = heads.iter().fold(f64::NEG_INFINITY, |best, head| if *head > best { *head } else { best });
            let Some(index) = heads.iter().position(|head| *head == survival && survival > f64::NEG_INFINITY) else {
                return;
            };
            let draft = &mut drafts[index];
            let before = if draft.taken == 0 { 1.0 } else { survivals[draft.start + draft.taken - 1] };
            draft.taken += 1;
            heads[index] = head(draft);
            all_right *= survival / f64::max(before, 1e-12);
            if let Some(head) = draft.head {
                steps = steps.max(draft.taken.saturating_sub(head));
            }
            tokens += survival;
            order.push(index);
            division = Division { drafted: order.len(), steps, rejected: 1.0 - all_right };
            points.push(Point { tokens, seconds: seconds(division) });
        }
    }

    /// What so many rows bring.
    pub(super) fn point(&self, drafted: usize) -> Option<&Point> {
        self.points.get(drafted)
    }

    /// The most tokens for a second that can be expected.
    pub(super) fn fastest(&self) -> f64 {
        self.points.iter().map(|point| point.tokens / point.seconds.max(1e-9)).fold(0.0, f64::max)
    }

    /// The best number of drafted rows, at least `least`, when a second is worth `price` tokens; and what that is
    /// worth.
    pub(super) fn best(&self, price: f64, least: usize) -> (usize, f64) {
        let mut best = (least, f64::NEG_INFINITY);
        for (drafted, point) in self.points.iter().enumerate().skip(least) {
            if point.worth(price) > best.1 {
                best = (drafted, point.worth(price));
            }
        }
        best
    }

    /// How many rows each text gets of so many.
    pub(super) fn lengths(&self, drafted: usize, mut give: impl FnMut(usize)) {
        self.order.iter().take(drafted).for_each(|text| give(*text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn expected(drafts: &[Vec<f64>], lengths: &[usize]) -> f64 {
        drafts.iter().zip(lengths).map(|(draft, length)| 1.0 + draft[..*length].iter().sum::<f64>()).sum()
    }

    #[test]
    fn what_is_there_costs_no_steps() {
        let mut pool = Pool::default();
        pool.append(&[0.9, 0.8, 0.7, 0.6], Some(2));
        pool.append(&[0.85], None);
        let steps = std::cell::RefCell::new(Vec::new());
        pool.pass(16, |division| {
            steps.borrow_mut().push(division.steps);
            1.0
        });
        // In falling order: 0.9, 0.85, 0.8, then what was drafted behind.
        assert_eq!(steps.into_inner(), [0, 0, 0, 0, 1, 2]);
    }

    proptest! {
        /// Against all divisions of the rows.
        #[test]
        fn no_division_brings_more(
            raw in proptest::collection::vec(proptest::collection::vec(0.01f64..1.0, 0..4), 1..4),
        ) {
            let drafts: Vec<Vec<f64>> = raw.iter().map(|draft| {
                let mut survival = 1.0;
                draft.iter().map(|right| { survival *= right; survival }).collect()
            }).collect();
            let mut pool = Pool::default();
            for draft in &drafts {
                pool.begin(None);
                draft.iter().for_each(|survival| pool.push(*survival));
            }
            let time = |division: Division| 1.0 + 0.3 * division.drafted as f64;
            pool.pass(64, time);
            let all: usize = drafts.iter().map(Vec::len).sum();
            let mut best = vec![0.0f64; all + 1];
            let mut lengths = vec![0; drafts.len()];
            loop {
                let sum: usize = lengths.iter().sum();
                best[sum] = best[sum].max(expected(&drafts, &lengths));
                let Some(next) = (0..drafts.len()).find(|index| lengths[*index] < drafts[*index].len()) else { break };
                lengths[next] += 1;
                lengths[..next].fill(0);
            }
            for (drafted, best) in best.iter().enumerate() {
                prop_assert!((pool.points[drafted].tokens - best).abs() < 1e-9);
            }
            let mut given = vec![0; drafts.len()];
            pool.lengths(all / 2, |text| given[text] += 1);
            prop_assert!((expected(&drafts, &given) - best[all / 2]).abs() < 1e-9);
        }
    }
}

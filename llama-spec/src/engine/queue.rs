//! Requests that wait for a slot, in the order in which they are to be started.
//!
//! A request gets a *turn*: the time it came, put off by [`AGEING`] for each level of priority below the highest. The
//! earliest turn is first. That is the same as raising a request by one level for each [`AGEING`] it has waited, without
//! anything to recompute: a request of the lowest level waits for those of higher levels that come within the next two
//! [`AGEING`], and for none that comes later, so nothing starves.

use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// How long a request waits to be worth as much as a new one of the next level.
pub(crate) const AGEING: Duration = Duration::from_secs(2);

/// How urgent a request is. Waiting counts too: after 2 s a request is treated like a new one of the next level, so a busy
/// engine puts no request off for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// Can wait, such as work in the background.
    Low,
    /// The usual.
    #[default]
    Normal,
    /// Goes before the others.
    High,
}

/// A bounded queue of requests.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    limit: usize,
    /// By `(turn, place)`, first to start first.
    waiting: Vec<Waiting<T>>,
    /// Where a new request stands among those with the same turn: behind the earlier ones.
    last_place: i64,
    /// And one that comes again: before them.
    first_place: i64,
}

#[derive(Debug)]
struct Waiting<T> {
    turn: Instant,
    place: i64,
    priority: Priority,
    deadline: Option<Instant>,
    item: T,
}

impl<T> Queue<T> {
    /// A queue that takes `limit` requests.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, waiting: Vec::new(), last_place: 0, first_place: 0 }
    }

    /// Sets how many requests it takes.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Puts a new request in its place.
    ///
    /// # Errors
    /// The request itself if the queue is full.
    pub(crate) fn push(
        &mut self,
        item: T,
        priority: Priority,
        deadline: Option<Instant>,
        now: Instant,
    ) -> Result<(), T> {
        if self.waiting.len() >= self.limit {
            return Err(item);
        }
        self.last_place += 1;
        self.insert(Waiting { turn: turn(priority, now), place: self.last_place, priority, deadline, item });
        Ok(())
    }

    /// Puts a request back that had been started and lost its slot: before all of its priority, full or not. Its waiting
    /// begins `now`, its deadline stays.
    pub(crate) fn push_again(&mut self, item: T, priority: Priority, deadline: Option<Instant>, now: Instant) {
        let equals = self.waiting.iter().filter(|waiting| waiting.priority == priority);
        let first = equals.map(|waiting| waiting.turn).min();
        let own = turn(priority, now);
        self.first_place -= 1;
        self.insert(Waiting {
            turn: first.map_or(own, |first| first.min(own)),
            place: self.first_place,
            priority,
            deadline,
            item,
        });
    }

    /// Takes the first request whose deadline is not over.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<T> {
        self.pop_if(now, |_| true)
    }

    /// Takes the first request that can be started, as `can_start` says, and whose deadline is not over.
    pub(crate) fn pop_if(&mut self, now: Instant, mut can_start: impl FnMut(&T) -> bool) -> Option<T> {
        let first = self.waiting.iter().position(|waiting| !waiting.is_over(now) && can_start(&waiting.item))?;
        Some(self.waiting.remove(first).item)
    }

    /// Takes all requests whose deadline is over, first in order first.
    pub(crate) fn expired(&mut self, now: Instant) -> Vec<T> {
        self.take(|waiting| waiting.is_over(now))
    }

    /// Takes all requests for which `gone` holds, first in order first.
    pub(crate) fn remove_if(&mut self, mut gone: impl FnMut(&T) -> bool) -> Vec<T> {
        self.take(|waiting| gone(&waiting.item))
    }

    /// Requests that wait, those whose deadline is over included.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn insert(&mut self, new: Waiting<T>) {
        let index = self.waiting.partition_point(|old| (old.turn, old.place) < (new.turn, new.place));
        self.waiting.insert(index, new);
    }

    fn take(&mut self, mut gone: impl FnMut(&Waiting<T>) -> bool) -> Vec<T> {
        self.waiting.extract_if(.., |waiting| gone(waiting)).map(|waiting| waiting.item).collect()
    }
}

impl<T> Waiting<T> {
    fn is_over(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }
}

fn turn(priority: Priority, came: Instant) -> Instant {
    let levels_below = match priority {
        Priority::High => 0,
        Priority::Normal => 1,
        Priority::Low => 2,
    };
    came + AGEING * levels_below
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LEVELS: [Priority; 3] = [Priority::Low, Priority::Normal, Priority::High];

    fn after(start: Instant, milliseconds: u64) -> Instant {
        start + Duration::from_millis(milliseconds)
    }

    fn drain<T>(queue: &mut Queue<T>, now: Instant) -> Vec<T> {
        std::iter::from_fn(|| queue.pop(now)).collect()
    }

    #[test]
    fn priority_then_arrival() {
        let start = Instant::now();
        let mut queue = Queue::new(9);
        for (index, priority) in [0, 1, 2, 0, 1, 2].into_iter().enumerate() {
            queue.push(index, LEVELS[priority], None, after(start, index as u64)).unwrap();
        }
        assert_eq!(drain(&mut queue, after(start, 9)), [2, 5, 1, 4, 0, 3]);
        assert!(queue.is_empty());
    }

    #[test]
    fn waiting_is_worth_levels() {
        let start = Instant::now();
        let order = |later: u64| {
            let mut queue = Queue::new(9);
            queue.push("low", Priority::Low, None, start).unwrap();
            queue.push("high", Priority::High, None, after(start, later)).unwrap();
            drain(&mut queue, after(start, later))
        };
        assert_eq!(order(3_999), ["high", "low"]);
        assert_eq!(order(4_000), ["low", "high"]);
    }

    #[test]
    fn a_full_queue_gives_the_request_back() {
        let now = Instant::now();
        let mut queue = Queue::new(1);
        queue.push("first", Priority::Low, None, now).unwrap();
        assert_eq!(queue.push("second", Priority::High, None, now), Err("second"));
        queue.push_again("preempted", Priority::Low, None, now);
        assert_eq!(queue.len(), 2);
        assert_eq!(queue.push("third", Priority::High, None, now), Err("third"));
        assert_eq!(Queue::new(0).push((), Priority::High, None, now), Err(()));
    }

    #[test]
    fn what_comes_again_goes_before_its_equals_only() {
        let start = Instant::now();
        let mut queue = Queue::new(9);
        queue.push("normal", Priority::Normal, None, start).unwrap();
        queue.push("high", Priority::High, None, start).unwrap();
        queue.push_again("again", Priority::Normal, None, after(start, 500));
        queue.push_again("again before", Priority::Normal, None, after(start, 600));
        assert_eq!(drain(&mut queue, after(start, 700)), ["high", "again before", "again", "normal"]);
    }

    #[test]
    fn what_is_too_late_is_not_started() {
        let start = Instant::now();
        let mut queue = Queue::new(9);
        queue.push("late", Priority::High, Some(after(start, 10)), start).unwrap();
        queue.push("soon", Priority::Normal, Some(after(start, 20)), start).unwrap();
        queue.push("patient", Priority::Low, None, start).unwrap();
        assert_eq!(queue.expired(after(start, 9)), [""; 0]);
        assert_eq!(queue.pop(after(start, 10)), Some("soon"));
        assert_eq!(queue.expired(after(start, 10)), ["late"]);
        assert_eq!(queue.len(), 1);
    }

    #[test]
    fn what_cannot_start_keeps_its_place() {
        let now = Instant::now();
        let mut queue = Queue::new(9);
        (0..4).for_each(|size| queue.push(10 - size, Priority::Normal, None, now).unwrap());
        assert_eq!(queue.pop_if(now, |size| *size < 9), Some(8));
        assert_eq!(queue.pop_if(now, |size| *size < 5), None);
        assert_eq!(queue.remove_if(|size| *size % 2 == 1), [9, 7]);
        assert_eq!(queue.pop(now), Some(10));
    }

    #[test]
    fn priorities_have_names() {
        assert_eq!(serde_json::to_string(&LEVELS).unwrap(), r#"["low","normal","high"]"#);
        assert_eq!(Priority::default(), Priority::Normal);
    }

    proptest! {
        /// Whoever else comes: once a request has waited its ageing out, only those that came before its turn go first.
        #[test]
        fn nothing_starves(gaps in proptest::collection::vec((0u64..400, 0usize..3), 1..80), level in 0usize..3) {
            let start = Instant::now();
            let mut queue = Queue::new(usize::MAX);
            queue.push(usize::MAX, LEVELS[level], None, start).unwrap();
            let turn = turn(LEVELS[level], start);
            let (mut now, mut started) = (start, false);
            for (index, (gap, priority)) in gaps.into_iter().enumerate() {
                now = after(now, gap);
                queue.push(index, LEVELS[priority], None, now).unwrap();
                // One is started for each that comes, so the queue never empties by itself.
                let first = queue.pop(now).unwrap();
                started |= first == usize::MAX;
                prop_assert!(started || now <= turn || first != index, "{index} came after the turn and went first");
            }
            let rest = drain(&mut queue, now);
            prop_assert_eq!(rest.contains(&usize::MAX), !started);
        }

        /// Requests of one priority leave as they came, whatever stands between them, and the bound holds.
        #[test]
        fn first_in_first_out_among_equals(
            steps in proptest::collection::vec((0u64..3_000, proptest::option::of(0usize..3)), 0..100),
            limit in 0usize..20,
        ) {
            let mut queue = Queue::new(limit);
            let (mut now, mut last, mut taken) = (Instant::now(), [None; 3], 0);
            let mut left = |(index, level): (usize, usize)| {
                let in_order = last[level].is_none_or(|before| before < index);
                last[level] = Some(index);
                in_order
            };
            for (index, (gap, level)) in steps.into_iter().enumerate() {
                now = after(now, gap);
                match level {
                    Some(level) => {
                        let full = queue.len() == limit;
                        prop_assert_eq!(queue.push((index, level), LEVELS[level], None, now).is_err(), full);
                        taken += usize::from(!full);
                    }
                    None => {
                        let empty = queue.is_empty();
                        let popped = queue.pop(now);
                        prop_assert_eq!(popped.is_none(), empty);
                        taken -= usize::from(!empty);
                        prop_assert!(popped.is_none_or(&mut left));
                    }
                }
                prop_assert_eq!(queue.len(), taken);
            }
            for popped in drain(&mut queue, now) {
                prop_assert!(left(popped));
            }
        }
    }
}

//! Drafting: a step computes one token for each slot that is still drafting.

use super::reads::Reads;
use super::{Heads, Sides, Stepwise};
use crate::context::Context;
use crate::error::{DecodeError, Failure};
use crate::ffi::speculation::{DraftRequest, Drafted};
use crate::sample::Candidate;
use crate::sample::confidence::{Confidence, confidence_in, largest, most_probable};
use crate::token::{Slot, Token};

/// Says after each drafted token of a slot whether to draft another one: given the slot, how many tokens it has by then, with those
/// that it goes on behind, and how sure the draft was of the last one. It is not asked where the draft ends anyway.
pub(in super::super) type Steer<'a> = dyn FnMut(Slot, usize, Confidence) -> bool + 'a;

/// Candidates that a token is drawn from, as in llama.cpp.
const CANDIDATES: usize = 10;
/// Logits divided by less could become infinite.
const MIN_TEMPERATURE: f32 = 1e-6;

/// A draft that is being made.
#[derive(Debug)]
pub(super) struct Course {
    /// Of the request.
    number: usize,
    slot: Slot,
    /// The most tokens.
    limit: usize,
    /// Where the first pair stands.
    position: u32,
    /// The hidden state that is read beside the next token; of heads in a chain, those of all tokens so far.
    rows: Vec<f32>,
    /// The entry whose output is the next token.
    entry: usize,
    /// The temperature at which tokens are drawn, and the random numbers for that.
    draws: Option<(f32, Random)>,
    ended: bool,
}

impl Stepwise {
    /// Drafts for the slots of these requests that have no draft yet, allow it and are not paused; `steer` ends drafts early. A
    /// draft of less than the smallest length is thrown away. What was drafted is left in the draft's memory, from the position
    /// of the request on. After an error there are no drafts.
    pub(in super::super) fn draft(
        &mut self,
        sides: &mut Sides<'_>,
        requests: &[DraftRequest],
        drafted: &mut [Drafted],
        steer: &mut Steer<'_>,
    ) -> Result<(), Failure> {
        let mut courses = std::mem::take(&mut self.courses);
        courses.clear();
        let made = self.make(sides, &mut courses, requests, drafted, steer);
        self.courses = courses;
        self.feed.clear();
        for (request, drafted) in requests.iter().zip(drafted.iter_mut()) {
            if drafted.by == Some(self.method) {
                if made.is_err() || drafted.tokens.len() < self.settings.min as usize {
                    drafted.clear();
                }
                self.notes_mut(request.slot)?.open = drafted.tokens.len();
            }
        }
        made
    }

    fn make(
        &mut self,
        sides: &mut Sides<'_>,
        courses: &mut Vec<Course>,
        requests: &[DraftRequest],
        drafted: &mut [Drafted],
        steer: &mut Steer<'_>,
    ) -> Result<(), Failure> {
        for (number, (request, drafted)) in requests.iter().zip(drafted.iter_mut()).enumerate() {
            self.notes_mut(request.slot)?.open = 0;
            if drafted.tokens.is_empty() && courses.iter().all(|course| course.slot != request.slot) {
                courses.extend(self.start(sides.draft, number, request)?);
            }
        }
        let mut step = 0;
        while !courses.is_empty() {
            let done = self.step(sides, step, courses, requests, drafted, steer);
            if let Heads::Chain(_) = self.heads {
                sides.draft.set_head(0)?;
            }
            match done? {
                Stepped::Done => courses.retain(|course| !course.ended),
                // What was drafted until then can be used.
                Stepped::NoRoom => break,
            }
            step += 1;
        }
        Ok(())
    }

    /// What there is to draft for a request, if it can be.
    fn start(&self, draft: &mut Context, number: usize, request: &DraftRequest) -> Result<Option<Course>, Failure> {
        let notes = self.notes(request.slot)?;
        let allowed = request.methods.is_empty() || request.methods.contains(self.method);
        let vocab = draft.model().vocab();
        let known = std::iter::once(&request.last).chain(&request.behind).all(|token| vocab.contains(*token));
        let behind = request.behind.len() as u32;
        let can_begin = behind == 0 || (self.goes_on() && behind < draft.batch_size());
        if !allowed || self.is_paused(request.slot) || !known || !can_begin {
            return Ok(None);
        }
        let (mut position, mut rows) = (request.position, Vec::new());
        match (&self.reads, &notes.pending) {
            (Reads::Nothing, _) => {}
            (Reads::Hidden, Some(pending)) => rows.extend_from_slice(&pending.row),
            (Reads::Hidden, None) => rows.resize(self.width, 0.0),
            (Reads::Layers(_), Some(pending)) if pending.position + 1 == request.position => {
                position = pending.position;
                rows.extend_from_slice(&pending.row);
                // Its pair with a token that was rejected may be there.
                draft.memory().remove(request.slot, position..).map_err(super::words)?;
            }
            // The draft has not seen the token before.
            (Reads::Layers(_), _) => return Ok(None),
        }
        let room = match self.heads {
            Heads::Shared => u32::MAX,
            Heads::Chain(heads) => heads.min(draft.batch_size()).min(draft.length_per_slot().saturating_sub(position)),
            Heads::One => draft.length_per_slot().saturating_sub(position.saturating_add(behind)),
        };
        let limit = request.limit.min(self.settings.max).min(room) as usize;
        if limit == 0 || limit < self.settings.min as usize {
            return Ok(None);
        }
        // At temperature 0, or hardly above, the distribution is one token: the draft is as good without it.
        let wanted = request.distributions.filter(|(temperature, _)| *temperature >= MIN_TEMPERATURE);
        let can_draw = self.settings.probabilistic && !matches!(self.reads, Reads::Layers(_));
        let draws = wanted.filter(|_| can_draw).map(|(temperature, seed)| (temperature, Random::new(seed)));
        Ok(Some(Course { number, slot: request.slot, limit, position, rows, entry: 0, draws, ended: false }))
    }

    /// Computes the next token of each course.
    fn step(
        &mut self,
        sides: &mut Sides<'_>,
        step: usize,
        courses: &mut [Course],
        requests: &[DraftRequest],
        drafted: &mut [Drafted],
        steer: &mut Steer<'_>,
    ) -> Result<Stepped, Failure> {
        let entries_each = match self.heads {
            Heads::Chain(_) => step + 1,
            _ if step > 0 => 1,
            _ => {
                let owed = |slot| self.notes(slot).map_or(0, |notes| notes.owed.tokens.len());
                let before = |course: &Course| requests[course.number].behind.len() + owed(course.slot);
                1 + courses.iter().map(before).max().unwrap_or(0)
            }
        };
        let together = (sides.draft.batch_size() as usize / entries_each).max(1);
        for courses in courses.chunks_mut(together) {
            self.feed.clear();
            for course in courses.iter_mut() {
                let (request, drafted) = (&requests[course.number], &drafted[course.number]);
                self.add(sides.draft, step, course, request, drafted)?;
            }
            self.decodes += 1;
            match self.feed.decode(sides.draft) {
                Ok(()) => {}
                Err(DecodeError::NoRoom { .. }) => return Ok(Stepped::NoRoom),
                Err(error) => return Err(self.failed(sides.draft, error)),
            }
            for course in courses.iter_mut() {
                self.notes_mut(course.slot)?.owed.clear();
                let before = requests[course.number].behind.len();
                self.take(sides, course, before, &mut drafted[course.number], steer)?;
            }
        }
        Ok(Stepped::Done)
    }

    /// Adds the entries of the next token of a course to the batch.
    fn add(
        &mut self,
        draft: &mut Context,
        step: usize,
        course: &mut Course,
        request: &DraftRequest,
        drafted: &Drafted,
    ) -> Result<(), Failure> {
        if let Heads::Chain(_) = self.heads {
            // What another head has left there.
            draft.memory().remove(course.slot, course.position..).map_err(super::words)?;
            draft.set_head(step as u32)?;
            let tokens = std::iter::once(&request.last).chain(&drafted.tokens);
            for ((number, token), row) in tokens.enumerate().zip(course.rows.chunks(self.width)) {
                let position = course.position + number as u32;
                course.entry = self.feed.push(*token, position, course.slot, number == step, row);
            }
            return Ok(());
        }
        let before = request.behind.len();
        if step == 0 {
            for owed in self.notes(course.slot)?.owed.entries(course.slot) {
                self.feed.push(owed.token, owed.position, owed.slot, false, &[]);
            }
            let tokens = std::iter::once(&request.last).chain(&request.behind).take(before);
            for (token, position) in tokens.zip(course.position..) {
                self.feed.push(*token, position, course.slot, false, &[]);
            }
        }
        let position = match self.heads {
            Heads::Shared => course.position,
            _ => course.position + (before + step) as u32,
        };
        let token = drafted.tokens.last().or(request.behind.last()).copied().unwrap_or(request.last);
        course.entry = self.feed.push(token, position, course.slot, true, &course.rows);
        Ok(())
    }

    /// Takes the token that was computed for a course, and sees whether to go on. `before` are those that it went on behind.
    fn take(
        &mut self,
        sides: &mut Sides<'_>,
        course: &mut Course,
        before: usize,
        drafted: &mut Drafted,
        steer: &mut Steer<'_>,
    ) -> Result<(), Failure> {
        course.ended = true;
        let logits = sides.draft.logits(course.entry).map_err(super::words)?;
        let Some((token, confidence)) = self.choose(logits, &mut course.draws) else { return Ok(()) };
        if !sides.target.model().vocab().contains(token) {
            return Ok(());
        }
        drafted.by = Some(self.method);
        drafted.tokens.push(token);
        drafted.confidences.push(confidence);
        if course.draws.is_some() {
            drafted.distributions.push(self.candidates.clone());
        }
        let tokens = drafted.tokens.len();
        course.ended = tokens >= course.limit || !steer(course.slot, before + tokens, confidence);
        if !course.ended && self.reads != Reads::Nothing {
            if !matches!(self.heads, Heads::Chain(_)) {
                course.rows.clear();
            }
            course.rows.extend_from_slice(sides.draft.hidden(course.entry)?);
        }
        Ok(())
    }

    /// The token to draft; nothing where the draft is not sure enough, or its logits are no numbers.
    fn choose(&mut self, logits: &[f32], draws: &mut Option<(f32, Random)>) -> Option<(Token, Confidence)> {
        let least = self.settings.probability_min;
        if draws.is_some() || least > 0.0 {
            let temperature = draws.as_ref().map_or(1.0, |(temperature, _)| *temperature);
            largest(logits, CANDIDATES, temperature, &mut self.candidates);
            self.candidates.first().filter(|best| best.probability >= least)?;
        }
        match draws {
            None => most_probable(logits),
            Some((_, random)) => {
                let token = random.draw(&self.candidates)?;
                Some((token, confidence_in(logits, token)?))
            }
        }
    }
}

/// How a step ended.
enum Stepped {
    Done,
    /// The draft's memory is full.
    NoRoom,
}

/// Random numbers that follow from a seed: SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number
/// generators", section 3).
#[derive(Debug)]
struct Random(u64);

impl Random {
    /// The sampler of the target may use the same seed; both must not draw the same numbers.
    fn new(seed: u32) -> Self {
        Self(u64::from(seed) ^ 0x6472_6166_7473_0000)
    }

    /// From 0 to below 1.
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 40) as f32 / (1_u64 << 24) as f32
    }

    /// One of the candidates, by their probabilities.
    fn draw(&mut self, candidates: &[Candidate]) -> Option<Token> {
        let mut left = self.next();
        for candidate in candidates {
            left -= candidate.probability;
            if left < 0.0 {
                return Some(candidate.token);
            }
        }
        // Rounding left nothing: whichever is likely.
        candidates.first().map(|candidate| candidate.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_as_frequent_as_they_are_probable() {
        let candidates: Vec<Candidate> = [0.5, 0.3, 0.2]
            .into_iter()
            .enumerate()
            .map(|(id, probability)| Candidate { token: Token::new(id as i32), logit: 0.0, probability })
            .collect();
        let mut counts = [0; 3];
        // As it is used: a few numbers of each of many seeds.
        for seed in 0..5000 {
            let mut random = Random::new(seed);
            (0..4).for_each(|_| counts[random.draw(&candidates).unwrap().id() as usize] += 1);
        }
        for (count, candidate) in counts.into_iter().zip(&candidates) {
            let expected = 20_000.0 * candidate.probability;
            // Four standard deviations.
            assert!(
                (count as f32 - expected).abs() < 4.0 * (expected * (1.0 - candidate.probability)).sqrt(),
                "{counts:?}"
            );
        }
        assert_eq!(Random::new(1).draw(&[]), None);
    }
}

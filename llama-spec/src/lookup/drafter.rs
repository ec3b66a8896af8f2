//! The drafter: it reads accepted tokens, keeps the places that the text follows, and copies from them.

use super::edit::Edit;
use super::evidence::{Agreement, Evidence, Place};
use super::guess::{Duel, From, Guess};
use super::index::Index;
use super::link::Link;
use super::panel::{Match, Opinion, Panel};
use super::rates::Rates;
use super::store::{Segment, Shelf};
use crate::token::Token;
use std::sync::Arc;

/// Earlier places are found by so many last tokens.
const LENGTHS: [usize; 4] = [1, 3, 8, 16];

/// Longer matches are not told apart when a place is found; those that are followed are counted on.
const LONGEST: usize = 32;

/// Places that are the same for so many tokens speak with those that are for more.
const ENOUGH: u32 = 16;

/// One token of a draft.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Proposed {
    /// The guess.
    pub token: Token,
    /// What speaks for it, if those before it are right.
    pub evidence: Evidence,
    /// How often such guesses were right in this text and before, or are usually.
    pub probability: f32,
}

/// The drafter of one slot: the text, where its parts stood before, and the places that it follows.
///
/// Only accepted tokens are put in, so nothing is ever taken back.
///
/// ```
/// use llama_spec::Token;
/// use llama_spec::lookup::Lookup;
///
/// let tokens = |ids: &[i32]| ids.iter().copied().map(Token::new).collect::<Vec<_>>();
/// let mut lookup = Lookup::new(None);
/// lookup.begin(&tokens(&[1, 2, 3, 4, 5, 2]));
/// lookup.extend(&tokens(&[3]), |evidence, right| println!("{evidence:?}: {right}"));
/// let mut draft = Vec::new();
/// lookup.propose(2, &mut draft);
/// assert_eq!(draft.iter().map(|one| one.token.id()).collect::<Vec<_>>(), [4, 5]);
/// ```
#[derive(Debug)]
pub struct Lookup {
    pub(super) index: Index<{ LENGTHS.len() }>,
    /// For each end, the latest place before it: the way to the places before that.
    pub(super) links: Vec<Link>,
    prompt: usize,
    /// The latest place where the end of the text stood before.
    pub(super) latest: Option<Match>,
    /// The place that the text follows, which was the latest when it began to.
    pub(super) followed: Option<Match>,
    pub(super) edit: Option<Edit>,
    rates: Rates,
    duel: Duel,
    shelf: Option<Shelf>,
    /// The place in another text that this one follows.
    pub(super) elsewhere: Option<(Arc<Segment>, Match)>,
    pub(super) guess: Option<Guess>,
}

impl Default for Lookup {
    fn default() -> Self {
        Self::new(None)
    }
}

impl Lookup {
    /// For no text yet. With a shelf, texts that are there are looked at as well.
    pub fn new(shelf: Option<Shelf>) -> Self {
        Self {
            index: Index::new(LENGTHS),
            links: Vec::new(),
            prompt: 0,
            latest: None,
            followed: None,
            edit: None,
            rates: Rates::default(),
            duel: Duel::default(),
            shelf,
            elsewhere: None,
            guess: None,
        }
    }

    /// A text begins, or goes on somewhere else: all of its tokens. When the text before is how it begins, only the rest is
    /// read; when it departs from it earlier, all is indexed again.
    pub fn begin(&mut self, text: &[Token]) {
        let shared = self.index.text().iter().zip(text).take_while(|(old, new)| old == new).count();
        if shared < self.index.text().len() {
            self.index.truncate(shared);
            self.links.truncate(shared);
            self.latest = self.links.last().and_then(|link| link.get());
            (self.followed, self.edit, self.elsewhere) = (self.latest, None, None);
        }
        self.prompt = text.len();
        let rest = text.get(shared..).unwrap_or_default();
        // A text that grows by little is likely to grow again.
        if rest.len() > shared {
            self.index.make_room(rest.len(), true);
            self.links.reserve_exact(rest.len());
        }
        rest.iter().for_each(|token| self.append(*token));
        self.guess = self.look();
    }

    /// Accepted tokens. For each one, `shadow` gets what spoke for the best guess and whether it was right, if there was one.
    pub fn extend(&mut self, tokens: &[Token], mut shadow: impl FnMut(Evidence, bool)) {
        for token in tokens {
            if let Some(guess) = self.guess.take() {
                let right = guess.token == *token;
                shadow(guess.evidence, right);
                self.rates.observe(guess.evidence, right);
                if let (From::Elsewhere, true, Some((segment, _))) = (guess.from, right, &self.elsewhere) {
                    segment.save(1);
                }
                for (other, evidence) in guess.others.into_iter().flatten() {
                    self.rates.observe(evidence, other == *token);
                }
                if let Some((latest, frequent)) = guess.duel {
                    self.duel.observe(latest == *token, frequent == *token);
                }
            }
            self.append(*token);
            self.guess = self.look();
        }
    }

    pub(super) fn append(&mut self, token: Token) {
        let right = self.leave(token);
        self.index.push(token);
        self.arrive(right, self.index.deepest());
    }

    /// The text is about to go on with `token`. Whether the place that it follows did as well.
    pub(super) fn leave(&mut self, token: Token) -> bool {
        let text = self.index.text();
        let right = self.followed.is_some_and(|followed| text.get(followed.end as usize) == Some(&token));
        if self.edit.as_mut().is_some_and(|edit| !edit.follow(text, token)) {
            self.edit = None;
        }
        if let Some(Match { end, length }) = self.followed
            && !right
            && self.edit.is_none_or(|edit| edit.right == 0)
        {
            self.edit = Edit::begin(text, end as usize, length as usize, token).or(self.edit);
        }
        self.elsewhere = self.elsewhere.take().filter(|(segment, place)| segment.next(place.end) == Some(token));
        if let Some((_, place)) = &mut self.elsewhere {
            *place = place.next();
        }
        right
    }

    /// The text has gone on with a token, and its end is found at the `deepest` place.
    pub(super) fn arrive(&mut self, right: bool, deepest: Option<(u32, usize)>) {
        let [grown, followed] = [self.latest, self.followed].map(|one| one.map(Match::next));
        self.latest = deepest.map(|(end, length)| {
            // What went on with the right token needs not be compared.
            let known = grown.filter(|one| one.end == end).or(followed.filter(|one| right && one.end == end));
            known.unwrap_or_else(|| Match {
                end,
                length: self.index.common(self.index.text(), end, length, LONGEST) as u32,
            })
        });
        self.followed = if right { followed } else { self.latest };
        if self.links.len() < self.index.text().len() {
            if self.links.len() == self.links.capacity() {
                self.links.reserve_exact(self.links.len() / 4 + 16);
            }
            self.links.push(self.latest.map_or(Link::NONE, Link::new));
        }
        // The text follows the place it departed from by itself again.
        if let (Some(edit), Some(followed)) = (self.edit, self.followed)
            && (edit.next == followed.end as usize || followed.length > 16)
        {
            self.edit = None;
        }
    }

    /// Up to `limit` tokens that may follow, best guess first. `out` is overwritten.
    pub fn propose(&mut self, limit: usize, out: &mut Vec<Proposed>) {
        out.clear();
        if limit == 0 {
            return;
        }
        self.look_elsewhere();
        let Some(guess) = self.guess else { return };
        let mut panel = guess.panel;
        let mut edit = self.edit;
        let text = self.index.text();
        let mut token = guess.token;
        let mut evidence = guess.evidence;
        loop {
            out.push(Proposed { token, evidence, probability: self.rates.estimate(evidence) });
            if out.len() >= limit {
                return;
            }
            let next = |end: u32| next(text, out, end as usize);
            match guess.from {
                From::Panel => {
                    panel.follow(token, next);
                    let Some((latest, frequent)) = panel.hear(next) else { return };
                    let opinion = self.duel.choose(latest, frequent);
                    (token, evidence) = (opinion.token, self.evidence(opinion));
                }
                From::Elsewhere => {
                    let Some((segment, place)) = &self.elsewhere else { return };
                    let done = out.len() as u32;
                    let Some(following) = segment.next(place.end + done) else { return };
                    token = following;
                    let length = (place.length + done) as usize;
                    evidence = Evidence::new(Place::Store, length, guess.evidence.agreement);
                }
                From::Edit => {
                    let Some(edit) = &mut edit else { return };
                    (edit.next, edit.right) = (edit.next + 1, edit.right + 1);
                    let Some(following) = next(edit.next as u32) else { return };
                    token = following;
                    evidence = Evidence::new(Place::Edit, edit.right + 1, guess.evidence.agreement);
                }
            }
        }
    }

    fn evidence(&self, opinion: Opinion) -> Evidence {
        let place = if (opinion.place.end as usize) < self.prompt { Place::Prompt } else { Place::Output };
        Evidence::new(place, opinion.place.length as usize, opinion.agreement)
    }

    /// The places where the end of the text stood before.
    pub(super) fn panel(&self) -> Panel {
        let mut panel = Panel::default();
        let Some(latest) = self.latest else { return panel };
        panel.add(latest);
        self.followed.into_iter().for_each(|followed| panel.add(followed));
        let mut place = latest;
        while !panel.is_full() {
            let before = self.links.get((place.end as usize).wrapping_sub(1)).and_then(|link| link.get());
            let Some(before) = before else { break };
            // What is the same at two places as at a third is the same at both.
            place = Match { end: before.end, length: before.length.min(place.length) };
            if place.length < latest.length.min(ENOUGH) {
                break;
            }
            panel.add(place);
        }
        panel
    }

    /// Looks into other texts when this one says little.
    fn look_elsewhere(&mut self) {
        let little = self.latest.is_none_or(|latest| latest.length < ENOUGH);
        if let Some(shelf) = &mut self.shelf
            && self.elsewhere.is_none()
            && little
        {
            self.elsewhere = shelf.find(self.index.text());
            if self.elsewhere.is_some() {
                self.guess = self.look();
            }
        }
    }

    /// Guesses in all ways, and chooses the one that is right most often.
    pub(super) fn look(&self) -> Option<Guess> {
        let text = self.index.text();
        let panel = self.panel();
        let heard = panel.hear(|end| text.get(end as usize).copied());
        let opinion = heard.map(|(latest, frequent)| self.duel.choose(latest, frequent));
        let own = opinion.map(|opinion| (opinion.token, self.evidence(opinion)));
        let agreement = |token| match own {
            None => Agreement::Alone,
            Some((other, _)) if other == token => Agreement::Unanimous,
            Some(_) => Agreement::Disputed,
        };
        let edit = self.edit.and_then(|edit| {
            let token = *text.get(edit.next)?;
            Some((token, Evidence::new(Place::Edit, edit.right + 1, agreement(token))))
        });
        let elsewhere = self.elsewhere.as_ref().and_then(|(segment, place)| {
            let token = segment.next(place.end)?;
            Some((token, Evidence::new(Place::Store, place.length as usize, agreement(token))))
        });
        let (mut best, mut from) = (own, From::Panel);
        let mut others = [None; 2];
        for (other, (way, name)) in others.iter_mut().zip([(edit, From::Edit), (elsewhere, From::Elsewhere)]) {
            *other = way;
            let estimate =
                |one: Option<(Token, Evidence)>| one.map_or(-1.0, |(_, evidence)| self.rates.estimate(evidence));
            if estimate(way) > estimate(best) {
                *other = best;
                (best, from) = (way, name);
            }
        }
        let (token, evidence) = best?;
        let duel = heard.and_then(|(latest, frequent)| Some((latest.token, frequent?.token)));
        Some(Guess { token, evidence, from, panel, duel, others })
    }

    /// The shelf whose texts are looked at.
    pub fn shelf(&self) -> Option<&Shelf> {
        self.shelf.as_ref()
    }

    /// Looks at the texts of this shelf from now on, or at none, and gives back the one before. What was followed in a text of
    /// that one is let go of; only [`Lookup::text`] stays, and how often which kinds of guesses were right.
    pub fn set_shelf(&mut self, shelf: Option<Shelf>) -> Option<Shelf> {
        self.elsewhere = None;
        self.guess = self.look();
        std::mem::replace(&mut self.shelf, shelf)
    }

    /// Keeps the text for those that come later, if there is a shelf. See [`Shelf::add`].
    pub fn keep(&self) {
        if let Some(shelf) = &self.shelf {
            shelf.add(self.index.text());
        }
    }

    /// Bytes of the text, its index and everything else that was allocated for it, and of this. What the shelf holds is not in
    /// it.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() - size_of_val(&self.index)
            + self.index.bytes()
            + self.links.capacity() * size_of::<Link>()
            + Rates::bytes()
    }

    /// The text so far.
    pub fn text(&self) -> &[Token] {
        self.index.text()
    }
}

/// The token at a place of the text with the draft behind it: a text may repeat what it is just saying.
fn next(text: &[Token], draft: &[Proposed], place: usize) -> Option<Token> {
    match place.checked_sub(text.len()) {
        None => text.get(place).copied(),
        Some(behind) => draft.get(behind).map(|one| one.token),
    }
}

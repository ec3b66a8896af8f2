//! Going on behind the draft of somebody else, as if it were right.

use super::drafter::{Lookup, Proposed};
use crate::token::Token;

impl Lookup {
    /// Up to `limit` tokens that may follow if those of `draft`, which are not accepted yet, are right: what
    /// [`propose`](Self::propose) would give had the text gone on with them, except that nothing was learned from them. `out` is
    /// overwritten. Afterwards all is as it was.
    ///
    /// ```
    /// use llama_spec::Token;
    /// use llama_spec::lookup::Lookup;
    ///
    /// let tokens = |ids: &[i32]| ids.iter().copied().map(Token::new).collect::<Vec<_>>();
    /// let mut lookup = Lookup::new(None);
    /// lookup.begin(&tokens(&[1, 2, 3, 4, 5, 9]));
    /// let mut draft = Vec::new();
    /// lookup.propose_after(&tokens(&[2, 3]), 2, &mut draft);
    /// assert_eq!(draft.iter().map(|one| one.token.id()).collect::<Vec<_>>(), [4, 5]);
    /// ```
    pub fn propose_after(&mut self, draft: &[Token], limit: usize, out: &mut Vec<Proposed>) {
        let known = self.text().len();
        let places = (self.latest, self.followed, self.edit, self.elsewhere.clone(), self.guess);
        for token in draft {
            let right = self.leave(*token);
            let deepest = self.index.assume(*token, known);
            self.arrive(right, deepest);
        }
        if !draft.is_empty() {
            self.guess = self.look();
        }
        self.propose(limit, out);
        self.index.forget(known);
        self.links.truncate(known);
        (self.latest, self.followed, self.edit, self.elsewhere, self.guess) = places;
    }
}

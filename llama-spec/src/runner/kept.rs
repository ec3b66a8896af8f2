//! The texts that lookup finds again: how the lookup of a slot gets at those of a tenant, and how a text gets among them.
//!
//! A job brings a [`Shelf`] to its slot and takes it away when it leaves, so that what is left there for the next job is the
//! text alone, of which lookup keeps no more than the next text begins with.

use super::{Job, Seat};
use crate::lookup::Shelf;
use crate::token::Token;

/// A text for those that come later.
#[derive(Debug)]
pub(crate) struct Kept {
    shelf: Shelf,
    text: Vec<Token>,
}

impl Kept {
    /// Puts it where it is to be. That takes about a microsecond for a token.
    pub(crate) fn put(&self) {
        self.shelf.add(&self.text);
    }
}

impl Seat {
    /// Gets a job, and tells lookup of its text.
    pub(super) fn take(&mut self, mut job: Job) {
        let shelf = job.shelf.take();
        if let Some(lookup) = &mut self.lookup {
            lookup.set_shelf(shelf);
        }
        self.job = Some(job);
        self.look_up_anew();
    }

    /// Gives the job up, with what it brought.
    pub(super) fn leave(&mut self) -> Option<Job> {
        let mut job = self.job.take()?;
        job.shelf = self.lookup.as_mut().and_then(|lookup| lookup.set_shelf(None));
        Some(job)
    }

    /// The text as lookup knows it, and where it is to be kept. Nothing when no token was generated: whoever asks for nothing is
    /// not to fill the store.
    pub(super) fn kept(&self) -> Option<Kept> {
        self.job.as_ref().filter(|job| job.answer.generated() > 0)?;
        let lookup = self.lookup.as_ref()?;
        Some(Kept { shelf: lookup.shelf()?.clone(), text: lookup.text().to_vec() })
    }
}

//! What speaks for a guess.

/// Where a guess was copied from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Place {
    /// What was generated earlier in this text.
    Output,
    /// The prompt.
    Prompt,
    /// Another text of the same tenant, by way of a [`Store`](super::Store).
    Store,
    /// Behind a place where this text departed from the one it followed.
    Edit,
}

/// Whether other places where the same tokens stood speak for the same guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Agreement {
    /// At least as many speak against it.
    Disputed,
    /// There is no other such place.
    Alone,
    /// More than half of them do.
    Majority,
    /// All of them do.
    Unanimous,
}

/// What speaks for a guess, in few enough kinds that an acceptance rate can be learned for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Evidence {
    /// Where it was copied from.
    pub place: Place,
    /// How many tokens before it are the same as there: the exponent of the power of two not above it, 5 at most. In a draft,
    /// the tokens drafted before are counted: a guess only matters if they were right. For [`Place::Edit`], the tokens since
    /// the edit and one more.
    pub length: u8,
    /// What other places say.
    pub agreement: Agreement,
}

const PLACES: usize = 4;
const LENGTHS: usize = 6;
const AGREEMENTS: usize = 4;

impl Evidence {
    /// How many different ones there are.
    pub const COUNT: usize = PLACES * LENGTHS * AGREEMENTS;

    pub(super) fn new(place: Place, length: usize, agreement: Agreement) -> Self {
        let length = length.max(1).ilog2().min(LENGTHS as u32 - 1) as u8;
        Self { place, length, agreement }
    }

    /// A number below [`Evidence::COUNT`], different for each.
    pub fn index(self) -> usize {
        let length = usize::from(self.length).min(LENGTHS - 1);
        (self.place as usize * LENGTHS + length) * AGREEMENTS + self.agreement as usize
    }

    /// By [`Evidence::index`], how often such guesses are right, as long as nothing better is known.
    pub fn priors() -> &'static [f32] {
        &PRIORS
    }

    /// How often such guesses are right, as long as nothing better is known.
    pub fn prior(self) -> f32 {
        PRIORS.get(self.index()).copied().unwrap_or(0.5)
    }
}

/// By place, length and agreement (disputed, alone, majority, unanimous), near what replays of copies, lists
/// and the turns of agents showed.
const PRIORS: [f32; Evidence::COUNT] = priors();

const fn priors() -> [f32; Evidence::COUNT] {
    const OWN: [[f32; AGREEMENTS]; LENGTHS] = [
        [0.10, 0.25, 0.15, 0.45],
        [0.20, 0.50, 0.25, 0.75],
        [0.20, 0.70, 0.50, 0.90],
        [0.20, 0.85, 0.50, 0.95],
        [0.20, 0.92, 0.50, 0.97],
        [0.50, 0.95, 0.80, 0.98],
    ];
    let mut all = [0.0; Evidence::COUNT];
    let mut index = 0;
    while index < Evidence::COUNT {
        let place = index / (LENGTHS * AGREEMENTS);
        // Behind an edit, the text before it speaks for the guess as well.
        let length = index / AGREEMENTS % LENGTHS + if place == Place::Edit as usize { 1 } else { 0 };
        let length = if length < LENGTHS { length } else { LENGTHS - 1 };
        all[index] = OWN[length][index % AGREEMENTS];
        index += 1;
    }
    all
}

//! A machine and texts that exist only in numbers: what the controller is scored on.

mod random;
mod recording;
mod strategy;
mod tests;
mod texts;
mod trace;
mod world;

use super::account::Account;
use strategy::Strategy;
use trace::Text;
use world::World;

/// What a run came to, in the true seconds of the machine; what the controller saw was noisy.
#[derive(Clone, Debug, Default)]
struct Score {
    tokens: usize,
    seconds: f64,
    account: Account,
}

impl Score {
    fn speed(&self) -> f64 {
        self.tokens as f64 / self.seconds
    }
}

/// Generates all texts side by side until the first of them ends. On a busy server another takes its place; were the
/// others carried on with alone, their small batches would count against whoever was the first to end.
fn run(world: &World, texts: &[Text], strategy: &mut dyn Strategy, seed: u64) -> Score {
    let mut random = random::Random::new(seed);
    let mut positions = vec![0usize; texts.len()];
    let mut score = Score::default();
    (0..texts.len()).for_each(|slot| strategy.begin(slot));
    loop {
        let open: Vec<usize> = (0..texts.len()).filter(|text| positions[*text] < texts[*text].len()).collect();
        if open.len() < texts.len() {
            score.account = strategy.account();
            return score;
        }
        let done = positions.iter().sum::<usize>() as f64 / texts.iter().map(Text::len).sum::<usize>().max(1) as f64;
        let moment = world.at(done, &mut random);
        let round = strategy.round(world, texts, &open, &positions, &moment);
        score.seconds += round.seconds;
        for (text, accepted) in open.iter().zip(round.accepted) {
            // The target's own token comes on top.
            let tokens = (accepted + 1).min(texts[*text].len() - positions[*text]);
            positions[*text] += tokens;
            score.tokens += tokens;
        }
    }
}

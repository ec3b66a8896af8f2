//! How long a model takes for batches of several tokens.

use crate::Ratio;
use llama_spec::{Batch, Context, ContextOptions, Model, Slot, Token};
use std::path::Path;
use std::time::Instant;

/// Tokens before the batch.
const DEPTH: u32 = 64;
const REPEATS: usize = 7;

/// Seconds to decode 1, 2, ... `most` tokens of a text at once behind a short text, each the median of some batches.
///
/// # Panics
/// When the model cannot be used.
pub fn row_times(path: &Path, threads: u32, most: usize) -> Vec<f64> {
    let model = Model::load(path).expect("the model loads");
    let token = model.vocab().tokenize("a").expect("plain text")[0];
    let options = ContextOptions::default().length_per_slot(512).threads(threads);
    let mut context = model.context(&options).expect("a context");
    decode(&mut context, token, DEPTH as usize, 0);
    // The first batches read the weights from the disk.
    (0..3).for_each(|_| _ = time_of(&mut context, token, 1));
    (1..=most)
        .map(|rows| Ratio::of((0..REPEATS).map(|_| time_of(&mut context, token, rows))).expect("times").median)
        .collect()
}

/// These times as multiples of the first, for people.
pub fn told(times: &[f64]) -> String {
    let each: Vec<String> = times.iter().map(|time| format!("{:.2}", time / times[0])).collect();
    format!("T(n) / T(1) for n = 1, 2, ...: {}", each.join(", "))
}

fn time_of(context: &mut Context, token: Token, rows: usize) -> f64 {
    let start = Instant::now();
    decode(context, token, rows, DEPTH);
    let time = start.elapsed().as_secs_f64();
    context.memory().remove(Slot::FIRST, DEPTH..).expect("a transformer forgets what it is told to");
    time
}

fn decode(context: &mut Context, token: Token, rows: usize, position: u32) {
    let mut batch = Batch::new();
    for row in 0..rows as u32 {
        batch.push(token, position + row, Slot::FIRST, true);
    }
    context.decode(&batch).expect("it decodes");
}

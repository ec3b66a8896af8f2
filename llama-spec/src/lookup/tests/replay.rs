//! Drafting for texts that are known, as a target would accept them, compared with the n-gram methods of llama.cpp.

use super::super::Lookup;
use super::texts::Recorded;
use super::{rivals, texts, tokens};

/// Rounds that a text takes when each checks one draft: its tokens by this number are those of a round.
fn rounds(
    text: &Recorded,
    limit: usize,
    mut draft: impl FnMut(&[i32], usize) -> Vec<i32>,
    mut outcome: impl FnMut(usize, usize),
) -> usize {
    let mut all = text.prompt.clone();
    let mut done = 0;
    let mut rounds = 0;
    let mut draft = |all: &[i32]| draft(all, limit);
    while done < text.output.len() {
        let drafted = draft(&all);
        assert!(drafted.len() <= limit);
        let rest = &text.output[done..];
        let accepted = drafted.iter().zip(rest).take_while(|(one, other)| one == other).count();
        outcome(drafted.len(), accepted);
        let more = rest.len().min(accepted + 1);
        all.extend(&rest[..more]);
        done += more;
        rounds += 1;
    }
    rounds
}

fn ours(text: &Recorded, limit: usize) -> usize {
    let mut lookup = Lookup::new(None);
    lookup.begin(&tokens(&text.prompt));
    let mut known = text.prompt.len();
    let draft = |all: &[i32], limit| {
        lookup.extend(&tokens(&all[known..]), |_, _| {});
        known = all.len();
        super::proposed(&mut lookup, limit)
    };
    rounds(text, limit, draft, |_, _| {})
}

fn rival(number: usize, text: &Recorded, limit: usize) -> usize {
    let rival = std::cell::RefCell::new(rivals::all().remove(number));
    let draft = |all: &[i32], limit| rival.borrow_mut().propose(all, limit);
    rounds(text, limit, draft, |drafted, accepted| rival.borrow_mut().outcome(drafted, accepted))
}

/// Fewer rounds than each of the five, on every kind of text.
#[test]
fn fewer_rounds_than_the_methods_of_llama_cpp() {
    for make in [texts::copy, texts::list, texts::agent] {
        let made: Vec<Recorded> = (1..=4).map(|seed| make(seed, 1500)).collect();
        for limit in [4, 8, 16] {
            let tokens: usize = made.iter().map(|text| text.output.len()).sum();
            let ours: usize = made.iter().map(|text| ours(text, limit)).sum();
            print!("{:5} {limit:2}: ours {:.2}", made[0].name, tokens as f64 / ours as f64);
            for (number, one) in rivals::all().iter().enumerate() {
                let theirs: usize = made.iter().map(|text| rival(number, text, limit)).sum();
                print!(", {} {:.2}", one.name(), tokens as f64 / theirs as f64);
                assert!(ours < theirs, "{} at {limit}: {ours} rounds, {} has {theirs}", made[0].name, one.name());
            }
            println!();
        }
    }
}

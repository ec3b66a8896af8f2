//! Drafts that several drafters have a part in.

use super::support::{Asked, Kind, MIXED, MIXED_DFLASH, MIXED_EAGLE3, MIXED_MTP, MIXED_RECURRENT, Table};
use crate::runner::{Call, Faults, OwnDrafter};
use crate::spec::{Draft, Drafter, Factory, Method, Methods, Source};
use crate::token::Token;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const TOKENS: usize = 60;

/// The target takes its time, and a few rows more cost nothing: drafts pay, also those of a model that is as small as the target.
fn slow() -> Faults {
    Faults::new(|call| {
        if call == Call::Decode {
            std::thread::sleep(Duration::from_millis(4));
        }
        None
    })
}

/// Prompts with a part of what the target says in circles, after each of which it is some tokens until that comes again: lookup
/// does not know these tokens, and goes on behind whoever does.
fn prompts(kind: Kind, count: usize) -> Vec<Vec<Token>> {
    let circle = kind.oracle(&kind.tokens("abc"), 80);
    let prompt = |number: usize| {
        let begin = 20 + number % 12;
        [&circle[begin..begin + 40], &circle[..1]].concat()
    };
    (0..count).map(prompt).collect()
}

/// Places where an accepted token of one drafter stands right behind one of another: a round ends with a token of the target's.
fn seams(asked: &[Asked]) -> Vec<(Source, Source)> {
    let pairs = asked.iter().flat_map(|asked| asked.sources.windows(2));
    let pairs = pairs.map(|pair| (pair[0], pair[1]));
    pairs.filter(|(one, other)| one != other && one.is_draft() && other.is_draft()).collect()
}

/// What was drafted and accepted is told alike by the numbers of the texts and by the controller.
fn check_numbers(table: &Table) {
    let total = table.runner.total();
    let (sources, account) = table.runner.account();
    for (source, drafter) in sources.into_iter().zip(account.drafters) {
        let counted = total.per_source().find(|(one, ..)| *one == source);
        let counted = counted.map_or((0, 0), |(_, drafted, accepted)| (drafted, accepted));
        assert_eq!((drafter.drafted, drafter.accepted), counted, "{}: {source}", table.kind.name);
        let delivered = table.asked.iter().flat_map(|asked| &asked.sources).filter(|one| **one == source).count();
        assert!(counted.1 as usize >= delivered, "{}: {source}", table.kind.name);
    }
}

#[test]
fn lookup_goes_on_behind_a_model() {
    let lookup = Source::Drafted(Method::Lookup);
    for kind in [MIXED, MIXED_MTP, MIXED_EAGLE3, MIXED_DFLASH, MIXED_RECURRENT] {
        let mut table = Table::new(kind, 3, &slow());
        prompts(kind, 36).iter().for_each(|prompt| table.ask(prompt, TOKENS));
        table.run();
        assert!(table.asked.iter().all(Asked::is_whole), "{}", kind.name);
        assert_eq!(table.runner.total().failures, 0, "{}: {:?}", kind.name, table.runner.speculation());
        check_numbers(&table);
        let seams = seams(&table.asked);
        let model = kind.methods.iter().copied().find(|method| !method.is_lookup());
        let behind = (Source::Drafted(model.unwrap()), lookup);
        // Their texts repeat themselves in part, so there are many places to go on from.
        if [MIXED_MTP.name, MIXED_RECURRENT.name].contains(&kind.name) {
            assert!(seams.contains(&behind), "{}: {}", kind.name, table.runner.total());
        }
        // Heads begin at the end of the text.
        let goes_on = model == Some(Method::DraftSimple);
        assert!(goes_on || seams.iter().all(|seam| *seam == behind), "{}: {seams:?}", kind.name);
    }
}

/// Knows what comes, two tokens at a time, and counts the rounds in which more than these were accepted.
struct Two {
    kind: Kind,
    text: Vec<Token>,
    told: Option<(usize, usize)>,
    more: Arc<AtomicUsize>,
}

impl Drafter for Two {
    fn begin(&mut self, text: &[Token]) {
        self.text = text.to_vec();
    }

    fn extend(&mut self, tokens: &[Token]) {
        if let Some((drafted, accepted)) = self.told.take() {
            assert!(drafted <= 2 && accepted == drafted, "{accepted} of {drafted}, all of which were right");
            assert!(tokens.len() > accepted);
            self.more.fetch_add(usize::from(tokens.len() > accepted + 1), Ordering::Relaxed);
        }
        self.text.extend_from_slice(tokens);
    }

    fn propose(&mut self, limit: usize, draft: &mut Draft) {
        self.kind.oracle(&self.text, limit.min(2)).into_iter().for_each(|token| draft.push(token));
    }

    fn outcome(&mut self, drafted: usize, accepted: usize) {
        self.told = Some((drafted, accepted));
    }
}

/// The drafter is told of its own tokens only.
fn goes_on_behind_a_drafter_of_the_users(method: Method) {
    let kind = MIXED;
    let more = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&more);
    let own = move || Two { kind, text: Vec::new(), told: None, more: Arc::clone(&counted) };
    let mut table = Table::with(kind, 3, &slow(), |setup| setup.own.push(Factory::new(own, false)));
    for prompt in prompts(kind, 36) {
        let mut job = table.job(prompt, TOKENS);
        job.drafting.own.push(OwnDrafter::new(0, &table.runner.own()[0]));
        job.drafting.methods = Methods::of(&[method]);
        table.submit(job);
    }
    table.run();
    assert!(table.asked.iter().all(Asked::is_whole));
    assert_eq!(table.runner.total().failures, 0, "{:?}", table.runner.speculation());
    check_numbers(&table);
    let seams = seams(&table.asked);
    assert!(seams.contains(&(Source::Own(0), Source::Drafted(method))), "{}", table.runner.total());
    assert!(more.load(Ordering::Relaxed) > 0);
}

#[test]
fn lookup_goes_on_behind_a_drafter_of_the_users() {
    goes_on_behind_a_drafter_of_the_users(Method::Lookup);
}

#[test]
fn a_model_goes_on_behind_a_drafter_of_the_users() {
    goes_on_behind_a_drafter_of_the_users(Method::DraftSimple);
}

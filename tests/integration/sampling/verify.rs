//! Verification of drafts: the same tokens as without a draft, or the same distribution.

use super::support::{Prompted, assert_distributed, broad, softmax};
use llama_spec::sample::{Candidate, Grammar, Penalties, SamplerOptions};
use llama_spec::{Error, Model, Token};
use llama_spec_tests::rng::Rng;
use llama_spec_tests::zoo::Llama;

#[test]
fn exactly_the_matching_prefix_is_accepted() {
    let llama = Llama::target(1);
    let mut prompted = Prompted::new(&llama, "ab");
    let right = prompted.tokens("defghi");
    let last = prompted.token(b'c');
    let mut accepted = Vec::new();
    for matching in 0..=right.len() {
        let mut draft = right.clone();
        if let Some(wrong) = draft.get_mut(matching) {
            *wrong = prompted.token(b'~');
        }
        let entries = prompted.decode_all(&[&[last], &draft[..]].concat());
        let mut sampler = prompted.sampler(SamplerOptions::greedy());
        sampler.verify(&prompted.context, &entries, &draft, &mut accepted).unwrap();
        let expected: Vec<Token> = right.iter().copied().chain(prompted.tokens("j")).take(matching + 1).collect();
        assert_eq!(accepted, expected, "{matching} of the draft match");
        prompted.forget_from(prompted.length);
    }
}

#[test]
fn no_draft_is_one_token() {
    let prompted = Prompted::new(&Llama::target(1), "abc");
    let mut accepted = vec![Token::new(0); 3];
    let mut sampler = prompted.sampler(SamplerOptions::greedy());
    sampler.verify(&prompted.context, &[prompted.entry], &[], &mut accepted).unwrap();
    assert_eq!(accepted, prompted.tokens("d"));
    sampler.verify_rejection(&prompted.context, &[prompted.entry], &[], &[], &mut accepted).unwrap();
    assert_eq!(accepted, prompted.tokens("d"));
}

#[test]
fn nothing_is_accepted_behind_the_end() {
    let mut prompted = Prompted::new(&Llama::target(1).ending_after(b'e'), "ab");
    let eot = prompted.model.vocab().eot().unwrap();
    let draft = [prompted.tokens("de"), vec![eot], prompted.tokens("fgh")].concat();
    let entries = prompted.decode_all(&[prompted.tokens("c"), draft.clone()].concat());
    let mut accepted = Vec::new();
    // Also where the end is the last drafted token.
    for length in 3..=draft.len() {
        let (entries, draft) = (&entries[..=length], &draft[..length]);
        let mut sampler = prompted.sampler(SamplerOptions::greedy());
        sampler.verify(&prompted.context, entries, draft, &mut accepted).unwrap();
        assert_eq!(accepted, draft[..3], "a draft of {length}");
        let mut sampler = prompted.sampler(SamplerOptions::default());
        let certain = vec![&[][..]; length];
        sampler.verify_rejection(&prompted.context, entries, draft, &certain, &mut accepted).unwrap();
        assert_eq!(accepted, draft[..3], "a draft of {length}");
    }
}

/// With penalties, a grammar and a seed, a verified text is the very text that would have come without a draft.
#[test]
fn verified_text_is_the_text_without_a_draft() {
    let penalties = Penalties { repeat: 1.2, frequency: 0.5, presence: 0.5, last_n: 64 };
    let grammar = Grammar::gbnf(r#"root ::= [a-zA-Z]{4} "-" [0-9a-z]+"#);
    let cases = [
        SamplerOptions::greedy().penalties(penalties),
        SamplerOptions::default().temperature(1.2).penalties(penalties).seed(11),
        SamplerOptions::unfiltered().grammar(grammar.clone()).seed(12),
        SamplerOptions::unfiltered().grammar(grammar).grammar_first(true).seed(12),
    ];
    for options in cases.map(|options| options.ignore_eos(true)) {
        let mut plain = Prompted::new(&broad(), "abc");
        let mut sampler = plain.sampler(options.clone());
        let text = plain.generate(&mut sampler, 40);
        assert_eq!(text.len(), 40);

        let mut prompted = Prompted::new(&broad(), "ab");
        let mut sampler = prompted.sampler(options);
        let (mut last, mut found, mut accepted) = (prompted.token(b'c'), Vec::<Token>::new(), Vec::new());
        for round in 0.. {
            // Drafts of 0 to 4 tokens, of which every third has a wrong one.
            let mut draft: Vec<Token> = text[found.len()..].iter().copied().take(round % 5).collect();
            if let Some(token) = draft.get_mut(round % 3).filter(|_| round % 3 == 2) {
                *token = prompted.token(b'~');
            }
            let entries = prompted.decode_all(&[&[last], &draft[..]].concat());
            sampler.verify(&prompted.context, &entries, &draft, &mut accepted).unwrap();
            found.extend(&accepted);
            let length = prompted.length + accepted.len() as u32;
            prompted.forget_from(length);
            last = accepted[accepted.len() - 1];
            if found.len() >= text.len() - 5 {
                break;
            }
        }
        assert_eq!(found, text[..found.len()]);
    }
}

/// A distribution over the tokens that differs from the model's, and draws from it.
struct Drafter {
    distribution: Vec<Candidate>,
    rng: Rng,
}

impl Drafter {
    fn new(weight: impl Fn(usize) -> f64, size: usize) -> Self {
        let sum: f64 = (0..size).map(&weight).sum();
        let candidate = |id| {
            let probability = (weight(id) / sum) as f32;
            Candidate { token: Token::new(id as i32), logit: 0.0, probability }
        };
        let mut distribution: Vec<Candidate> = (0..size).map(candidate).collect();
        distribution.retain(|candidate| candidate.probability > 0.0);
        Self { distribution, rng: Rng::new(1, "drafter", size as u64) }
    }

    fn draw(&mut self) -> Token {
        let mut left = self.rng.bits() as f64 / u64::MAX as f64;
        for candidate in &self.distribution {
            left -= f64::from(candidate.probability);
            if left <= 0.0 {
                return candidate.token;
            }
        }
        self.distribution[self.distribution.len() - 1].token
    }
}

#[test]
fn rejection_keeps_the_distribution_and_accepts_what_it_can() {
    let mut prompted = Prompted::new(&broad(), "ab");
    let filler = prompted.token(b'd');
    let entries = prompted.decode_all(&[prompted.token(b'c'), filler]);
    let logits = prompted.context.logits(entries[0]).unwrap().to_vec();
    let p = softmax(&logits, 1.0);
    let drafters = [
        Drafter::new(|_| 1.0, p.len()),
        Drafter::new(|id| if (80..130).contains(&id) { (id - 79) as f64 } else { 0.0 }, p.len()),
        Drafter::new(|id| p[id].powi(2), p.len()),
    ];
    for mut drafter in drafters {
        let mut q = vec![0f64; p.len()];
        drafter.distribution.iter().for_each(|c| q[c.token.id() as usize] = f64::from(c.probability));
        let mut sampler = prompted.sampler(SamplerOptions::unfiltered().seed(21));
        let (mut accepted, mut firsts, mut kept) = (Vec::new(), Vec::new(), 0usize);
        for _ in 0..20_000 {
            let draft = [drafter.draw()];
            let distributions = [&drafter.distribution[..]];
            let context = &prompted.context;
            sampler.verify_rejection(context, &entries, &draft, &distributions, &mut accepted).unwrap();
            assert!(accepted.len() == 1 || accepted[0] == draft[0]);
            kept += usize::from(accepted.len() == 2);
            firsts.push(accepted[0]);
        }
        assert_distributed(&firsts, &p);
        let expected: f64 = p.iter().zip(&q).map(|(p, q)| p.min(*q)).sum();
        let share = kept as f64 / 20_000.0;
        let deviation = (expected * (1.0 - expected) / 20_000.0).sqrt();
        assert!((share - expected).abs() < 4.0 * deviation, "accepted {share}, expected {expected}");
    }
}

#[test]
fn rejection_under_a_grammar_keeps_the_distribution_of_what_it_allows() {
    let mut prompted = Prompted::new(&broad(), "ab");
    let entries = prompted.decode_all(&prompted.tokens("cd"));
    let logits = prompted.context.logits(entries[0]).unwrap().to_vec();
    let allowed = |id: usize| (usize::from(b'a')..=usize::from(b'f')).contains(&id);
    let masked: Vec<f32> =
        logits.iter().enumerate().map(|(id, logit)| if allowed(id) { *logit } else { f32::NEG_INFINITY }).collect();
    let p = softmax(&masked, 1.0);
    for first in [false, true] {
        let options = SamplerOptions::unfiltered().grammar(Grammar::gbnf("root ::= [a-f] [a-z]*")).grammar_first(first);
        let start = prompted.sampler(options.seed(22));
        let mut drafter = Drafter::new(|id| if (94..104).contains(&id) { 1.0 } else { 0.0 }, logits.len());
        let (mut accepted, mut firsts, mut sampler) = (Vec::new(), Vec::new(), start.try_clone().unwrap());
        for _ in 0..10_000 {
            let draft = [drafter.draw()];
            // The grammar back to its start, the random numbers going on.
            let distributions = [&drafter.distribution[..]];
            sampler.verify_rejection(&prompted.context, &entries, &draft, &distributions, &mut accepted).unwrap();
            firsts.push(accepted[0]);
            let seed = u32::try_from(firsts.len()).unwrap();
            let options = sampler.options().clone().seed(seed);
            sampler = prompted.sampler(options);
        }
        assert_distributed(&firsts, &p);
    }
}

#[test]
fn a_greedy_sampler_rejects_as_it_compares() {
    let mut prompted = Prompted::new(&Llama::target(1), "ab");
    let draft = prompted.tokens("de~");
    let entries = prompted.decode_all(&[prompted.tokens("c"), draft.clone()].concat());
    let drafter = Drafter::new(|_| 1.0, prompted.logits().len());
    let mut accepted = Vec::new();
    let mut sampler = prompted.sampler(SamplerOptions::greedy());
    let distributions = [&drafter.distribution[..]; 3];
    sampler.verify_rejection(&prompted.context, &entries, &draft, &distributions, &mut accepted).unwrap();
    assert_eq!(accepted, prompted.tokens("def"));
}

#[test]
fn an_empty_distribution_is_certainty() {
    let mut prompted = Prompted::new(&broad(), "ab");
    let draft = prompted.tokens("d");
    let entries = prompted.decode_all(&[prompted.tokens("c"), draft.clone()].concat());
    let p = softmax(prompted.context.logits(entries[0]).unwrap(), 1.0);
    let mut sampler = prompted.sampler(SamplerOptions::unfiltered().seed(3));
    let mut accepted = Vec::new();
    let firsts: Vec<Token> = (0..10_000)
        .map(|_| {
            sampler.verify_rejection(&prompted.context, &entries, &draft, &[&[]], &mut accepted).unwrap();
            accepted[0]
        })
        .collect();
    assert_distributed(&firsts, &p);
}

/// One drafter draws the first token, and another one that is certain goes on behind it.
#[test]
fn drawn_and_certain_tokens_in_one_draft_keep_the_distribution() {
    let model = Model::load(broad().cached().unwrap()).unwrap();
    let mut rows = [b'd', b'e'].map(|first| {
        let mut prompted = Prompted::of(model.clone(), "ab");
        let draft = [prompted.token(first), prompted.token(b'f')];
        let entries = prompted.decode_all(&[&[prompted.token(b'c')], &draft[..]].concat());
        (prompted, draft, entries)
    });
    let of =
        |rows: &(Prompted, [Token; 2], Vec<usize>), at: usize| softmax(rows.0.context.logits(rows.2[at]).unwrap(), 1.0);
    let (p, second) = (of(&rows[0], 0), of(&rows[0], 1));
    let ids = rows.each_ref().map(|(_, draft, _)| draft[0].id() as usize);
    let share = |id: usize| if id == ids[0] { 0.7 } else { 0.3 };
    let mut drafter = Drafter::new(|id| if ids.contains(&id) { share(id) } else { 0.0 }, p.len());
    let mut sampler = rows[0].0.sampler(SamplerOptions::unfiltered().seed(23));
    let (mut accepted, mut all, mut behind) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..40_000 {
        let drawn = drafter.draw();
        let which = usize::from(drawn != rows[0].1[0]);
        let (prompted, draft, entries) = &mut rows[which];
        let distributions = [&drafter.distribution[..], &[]];
        sampler.verify_rejection(&prompted.context, entries, draft, &distributions, &mut accepted).unwrap();
        all.push(accepted[0]);
        behind.extend(accepted.get(1).filter(|_| which == 0));
    }
    assert_distributed(&all, &p);
    assert!(behind.len() > 1000, "only {} first tokens were accepted", behind.len());
    assert_distributed(&behind, &second);
}

#[test]
fn wrong_lengths_and_rows_are_refused() {
    let mut prompted = Prompted::new(&Llama::target(1), "ab");
    let draft = prompted.tokens("de");
    let entries = prompted.decode_all(&[prompted.tokens("c"), draft.clone()].concat());
    let mut sampler = prompted.sampler(SamplerOptions::greedy());
    let mut accepted = Vec::new();
    let context = &prompted.context;
    assert!(matches!(sampler.verify(context, &entries[..2], &draft, &mut accepted), Err(Error::Sample { .. })));
    assert!(matches!(sampler.verify(context, &[], &[], &mut accepted), Err(Error::Sample { .. })));
    let bad = Candidate { token: draft[0], logit: 0.0, probability: f32::NAN };
    for distributions in [&[][..], &[&[][..]; 3], &[&[bad][..], &[bad]]] {
        let refused = sampler.verify_rejection(context, &entries, &draft, distributions, &mut accepted);
        assert!(matches!(refused, Err(Error::Sample { .. })), "{refused:?}");
        assert_eq!(accepted, []);
    }

    // The third row does not exist: what was accepted before it is told.
    let rows = [entries[0], entries[1], 77];
    assert!(matches!(sampler.verify(context, &rows, &draft, &mut accepted), Err(Error::Sample { .. })));
    assert_eq!(accepted, draft);
}

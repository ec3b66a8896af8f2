//! Answers taken apart: content, reasoning, ends.

use super::support::{Sum, THINKING, ask, feed, render};
use llama_spec::Error;
use llama_spec::chat::{Delta, Message, ReasoningFormat};
use llama_spec::sample::SamplerOptions;
use llama_spec_tests::zoo::CHAT_TEMPLATE;

#[test]
fn reasoning_streams_apart_from_the_content() {
    let rendered = render(THINKING, ask("x"));
    assert!(rendered.supports_thinking());
    let tags = rendered.reasoning_tags().unwrap();
    assert_eq!((tags.start.as_str(), &tags.ends[..]), ("<think>", &["</think>".to_owned()][..]));
    assert_eq!(rendered.apply(SamplerOptions::greedy()).reasoning_tags, Some(tags));

    let mut parser = rendered.answer_parser().unwrap();
    let sum = feed(&mut parser, "<think>\nHm, 世界.\n</think>\n\nHello < there.");
    assert_eq!(sum.content, "Hello < there.");
    assert_eq!(sum.reasoning.trim(), "Hm, 世界.");
    assert_eq!(parser.message().text(), sum.content);
    assert_eq!(parser.message().reasoning_content.as_ref(), Some(&sum.reasoning));
}

#[test]
fn reasoning_stays_in_the_content_when_asked() {
    let rendered = render(THINKING, ask("x").reasoning_format(ReasoningFormat::None));
    let answer = "<think>\nHm.\n</think>\n\nHello.";
    let sum = feed(&mut rendered.answer_parser().unwrap(), answer);
    assert_eq!(sum, Sum { content: answer.into(), ..Sum::default() });
}

#[test]
fn each_parser_has_its_own_answer() {
    let rendered = render(CHAT_TEMPLATE, ask("x"));
    let mut parsers = [rendered.answer_parser().unwrap(), rendered.answer_parser().unwrap()];
    drop(rendered);
    assert_eq!(parsers[0].feed("one", false).unwrap(), [Delta::Content("one".into())]);
    assert_eq!(parsers[1].feed("two", true).unwrap(), [Delta::Content("two".into())]);
    assert_eq!(parsers[0].feed("", true).unwrap(), []);
    let [one, two] = parsers.map(|parser| parser.into_message());
    assert_eq!([one, two], [Message::assistant("one"), Message::assistant("two")]);
}

#[test]
fn an_answer_ends_once() {
    let mut parser = render(CHAT_TEMPLATE, ask("x")).answer_parser().unwrap();
    assert!(!parser.is_finished());
    parser.feed("", true).unwrap();
    assert!(parser.is_finished());
    assert!(matches!(parser.feed("more", false), Err(Error::Chat { .. })));
    assert!(matches!(parser.feed("", true), Err(Error::Chat { .. })));
}

#[test]
fn parsers_move_between_threads() {
    let mut parser = render(THINKING, ask("x")).answer_parser().unwrap();
    parser.feed("<think>a", false).unwrap();
    let message = std::thread::spawn(move || {
        parser.feed("b</think>c", true).unwrap();
        parser.into_message()
    });
    assert_eq!(message.join().unwrap(), Message::assistant("c").reasoning("ab"));
}

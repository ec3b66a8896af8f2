//! Tools: described in the prompt, called in the answer, and kept to by the sampler.

use super::support::{Sum, TOOLS, ask, feed, model, render};
use llama_spec::chat::{ChatRequest, Message, Rendered, Tool, ToolCall, ToolChoice};
use llama_spec::sample::{Grammar, SamplerOptions, Trigger};
use llama_spec::{Batch, ContextOptions, Sampler, Slot};
use serde_json::{Value, json};

fn add() -> Tool {
    let parameters = json!({
        "type": "object",
        "properties": { "a": { "type": "integer", "minimum": 0, "maximum": 99 }, "sure": { "type": "boolean" } },
        "required": ["a", "sure"],
    });
    Tool::new("add", "Adds numbers.", parameters)
}

fn request() -> ChatRequest {
    ask("2 and 3?").tools(vec![add()])
}

const CALL: &str = "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 2, \"sure\": true}}\n</tool_call>";

#[test]
fn tools_are_described_and_guarded_by_a_lazy_grammar() {
    let rendered = render(TOOLS, request());
    assert!(rendered.prompt().contains("Adds numbers."), "{}", rendered.prompt());
    let Some(Grammar::Template(grammar)) = rendered.grammar() else { panic!("{rendered:?}") };
    assert!(grammar.lazy);
    let word = |trigger: &Trigger| matches!(trigger, Trigger::Word(word) if word.contains("<tool_call>"));
    assert!(grammar.triggers.iter().any(word), "{grammar:?}");
    let none = render(TOOLS, request().tool_choice(ToolChoice::None));
    assert!(none.grammar().is_none());
}

#[test]
fn a_call_is_taken_apart_as_it_comes() {
    let mut parser = render(TOOLS, request()).answer_parser().unwrap();
    let sum = feed(&mut parser, CALL);
    let [(name, arguments)] = &sum.calls[..] else { panic!("{sum:?}") };
    assert_eq!(name, "add");
    assert_eq!(serde_json::from_str::<Value>(arguments).unwrap(), json!({ "a": 2, "sure": true }));
    let [call] = &parser.message().tool_calls[..] else { panic!("{:?}", parser.message()) };
    assert_eq!((&call.name, &call.arguments), (name, arguments));
}

#[test]
fn text_without_a_call_is_content() {
    let mut parser = render(TOOLS, request()).answer_parser().unwrap();
    let sum = feed(&mut parser, "It is 5.");
    assert_eq!(sum, Sum { content: "It is 5.".into(), ..Sum::default() });
}

#[test]
fn several_calls_come_apart_where_they_are_allowed() {
    let mut parser = render(TOOLS, request().parallel_tool_calls(true)).answer_parser().unwrap();
    let sum = feed(&mut parser, &format!("{CALL}\n{}", CALL.replace('2', "7")));
    assert_eq!(sum.calls.len(), 2, "{sum:?}");
    assert!(sum.calls[1].1.contains('7'));
}

#[test]
fn calls_and_results_go_back_into_the_prompt() {
    let mut parser = render(TOOLS, request()).answer_parser().unwrap();
    parser.feed(CALL, true).unwrap();
    let messages = vec![Message::user("2 and 3?"), parser.into_message(), Message::tool_result("1", "five")];
    let prompt = render(TOOLS, ChatRequest::new(messages).tools(vec![add()])).prompt().to_owned();
    assert!(prompt.contains(CALL), "{prompt}");
    assert!(prompt.contains("<tool_response>\nfive\n</tool_response>"), "{prompt}");
    let own = Message::calls(vec![ToolCall::new("add", r#"{"a": 2, "sure": true}"#).id("1")]);
    let prompt = render(TOOLS, ChatRequest::new(vec![Message::user("x"), own]).tools(vec![add()])).prompt().to_owned();
    assert!(prompt.contains(CALL), "{prompt}");
}

#[test]
fn a_call_without_arguments_is_rendered_as_one_with_an_empty_object() {
    let messages = vec![Message::user("x"), Message::calls(vec![ToolCall::new("now", "")])];
    let prompt = render(TOOLS, ChatRequest::new(messages)).prompt().to_owned();
    assert!(prompt.contains("{\"name\": \"now\", \"arguments\": {}}"), "{prompt}");
}

/// The answer to the rendered prompt that begins with `start`, until the text ends.
fn generate(rendered: &Rendered, options: SamplerOptions, start: &str) -> String {
    let model = model();
    let mut context = model.context(&ContextOptions::default().length_per_slot(2048).threads(1)).unwrap();
    let mut sampler = Sampler::new(&model, &rendered.apply(options)).unwrap();
    let begun = model.vocab().tokenize_plain(start).unwrap();
    begun.iter().for_each(|token| sampler.accept(*token).unwrap());
    let mut tokens = [model.vocab().tokenize(rendered.prompt()).unwrap(), begun].concat();
    let (mut text, mut length) = (start.as_bytes().to_vec(), 0);
    while length < 2000 {
        let mut batch = Batch::new();
        batch.push_prompt(&tokens, length, Slot::FIRST);
        context.decode(&batch).unwrap();
        length += batch.len() as u32;
        let token = sampler.sample(&context, batch.len() - 1).unwrap();
        sampler.accept(token).unwrap();
        if model.vocab().is_end_of_generation(token) {
            break;
        }
        text.extend(model.vocab().bytes(token).unwrap());
        tokens = vec![token];
    }
    String::from_utf8(text).unwrap()
}

/// The zoo's model knows nothing of tools, so whatever has their form comes from the grammar.
#[test]
fn once_begun_a_call_is_finished_as_the_tool_asks() {
    for choice in [ToolChoice::Auto, ToolChoice::Required] {
        let rendered = render(TOOLS, request().tool_choice(choice));
        for options in [SamplerOptions::greedy(), SamplerOptions::unfiltered().seed(4)] {
            let answer = generate(&rendered, options, "Well: <tool_call>\n");
            let mut parser = rendered.answer_parser().unwrap();
            parser.feed(&answer, true).unwrap_or_else(|error| panic!("{error}: {answer}"));
            // This form of call may be repeated, and the model does not know when to end.
            assert!(!parser.message().tool_calls.is_empty(), "{answer}");
            for call in &parser.message().tool_calls {
                assert_eq!(call.name, "add");
                let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
                let a = arguments["a"].as_u64();
                assert!(a.is_some_and(|a| a <= 99) && arguments["sure"].is_boolean(), "{answer}");
            }
            assert_eq!(parser.message().text().trim(), "Well:");
        }
    }
}

/// A required call may come late, but the text does not end without it.
#[test]
fn a_required_call_keeps_the_text_from_ending() {
    let rendered = render(TOOLS, request().tool_choice(ToolChoice::Required));
    let mut sampler = Sampler::new(&model(), &rendered.apply(SamplerOptions::greedy())).unwrap();
    let eos = model().vocab().eos().unwrap();
    for token in model().vocab().tokenize_plain("It is 5.").unwrap() {
        assert!(sampler.accept(eos).is_err());
        sampler.accept(token).unwrap();
    }
    let lazy = render(TOOLS, request()).apply(SamplerOptions::greedy());
    Sampler::new(&model(), &lazy).unwrap().accept(eos).unwrap();
}

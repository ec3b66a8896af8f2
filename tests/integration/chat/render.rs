//! From messages to a prompt.

use super::support::{THINKING, ask, model, render, template};
use llama_spec::chat::{ChatRequest, ChatTemplate, Content, ContentPart, Continuation, Message, Role};
use llama_spec::sample::{Grammar, SamplerOptions};
use llama_spec::{Error, Model, Sampler};
use llama_spec_tests::zoo::{CHAT_TEMPLATE, Llama};
use serde_json::json;

fn conversation() -> ChatRequest {
    ChatRequest::new(vec![
        Message::system("Be brief."),
        Message::user("Hello!"),
        Message::assistant("Hi. What's up?"),
        Message::user("Grüße, 世界\n😀"),
    ])
}

const CHATML: &str = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello!<|im_end|>\n\
    <|im_start|>assistant\nHi. What's up?<|im_end|>\n<|im_start|>user\nGrüße, 世界\n😀<|im_end|>\n";

#[test]
fn chatml_is_rendered_to_the_letter() {
    let own = Model::load(Llama::target(1).with_chat_template(CHAT_TEMPLATE).cached().unwrap()).unwrap();
    let own = ChatTemplate::from_model(&own).unwrap();
    assert_eq!(own.source().unwrap(), CHAT_TEMPLATE);
    for template in [own, template(CHAT_TEMPLATE), ChatTemplate::chatml(&model()).unwrap()] {
        let rendered = template.render(&conversation()).unwrap();
        assert_eq!(rendered.prompt(), format!("{CHATML}<|im_start|>assistant\n"));
        assert!(rendered.grammar().is_none());
        assert!(rendered.reasoning_tags().is_none() && !rendered.supports_thinking());
        let open = template.render(&conversation().add_generation_prompt(false)).unwrap();
        assert_eq!(open.prompt(), CHATML);
    }
}

#[test]
fn the_prompt_becomes_the_special_tokens_of_the_vocabulary() {
    let model = model();
    let prompt = ChatTemplate::chatml(&model).unwrap().render(&ask("x")).unwrap().prompt().to_owned();
    let tokens = model.vocab().tokenize(&prompt).unwrap();
    let start = Llama::target(1).vocabulary().special(llama_spec_tests::vocab::Special::MessageStart);
    assert_eq!(tokens.iter().filter(|token| token.id() as u32 == start).count(), 2);
}

#[test]
fn a_begin_token_that_the_vocabulary_adds_is_left_out() {
    let rendered = render("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}", ask("x"));
    assert_eq!(rendered.prompt(), "x<|endoftext|>");
}

#[test]
fn a_model_without_a_template_says_what_to_do() {
    let error = ChatTemplate::from_model(&model()).unwrap_err();
    assert!(matches!(error, Error::Chat { .. }));
    assert!(error.to_string().contains("ChatML"), "{error}");
}

#[test]
fn templates_say_what_they_can() {
    let has = |source: &str, capability: &str| template(source).capabilities().unwrap()[capability] == true;
    assert!(has(super::support::TOOLS, "supports_tools"));
    assert!(has(super::support::TOOLS, "supports_tool_calls"));
    assert!(!has(CHAT_TEMPLATE, "supports_tools"));
}

#[test]
fn arguments_reach_the_template() {
    let source =
        "{{ mood }} {{ nested.deep[1] }} {{ enable_thinking }} {% for m in messages %}{{ m.content }}{% endfor %}";
    let request = ask("x").template_argument("mood", "calm").template_argument("nested", json!({ "deep": [1, "two"] }));
    assert_eq!(render(source, request.clone()).prompt(), "calm two True x");
    assert_eq!(render(source, request.enable_thinking(false)).prompt(), "calm two False x");
}

#[test]
fn parts_roles_and_names_are_passed_on() {
    let part = |text: &str| ContentPart::Text { text: text.into() };
    let parts = Message::user(Content::Parts(vec![part("a"), part("b")]));
    assert!(render(CHAT_TEMPLATE, ChatRequest::new(vec![parts])).prompt().contains("<|im_start|>user\na\nb<|im_end|>"));
    let critic = Message::new(Role::Other("critic".into()), "No.");
    assert!(render(CHAT_TEMPLATE, ChatRequest::new(vec![critic])).prompt().starts_with("<|im_start|>critic\nNo."));
    let developer = Message::new(Role::Developer, "Do.");
    assert!(render(CHAT_TEMPLATE, ChatRequest::new(vec![developer])).prompt().starts_with("<|im_start|>system\nDo."));
}

#[test]
fn the_last_message_can_be_continued() {
    let messages = vec![Message::user("Count."), Message::assistant("One, two,")];
    let request = ChatRequest::new(messages).continue_final_message(Continuation::Auto);
    let rendered = render(CHAT_TEMPLATE, request);
    assert!(rendered.prompt().ends_with("<|im_start|>assistant\nOne, two,"), "{}", rendered.prompt());
    let mut parser = rendered.answer_parser().unwrap();
    assert_eq!(super::support::feed(&mut parser, " three.").content, " three.");
    assert_eq!(parser.message().text(), "One, two, three.");
}

#[test]
fn a_schema_becomes_a_grammar_for_the_sampler() {
    let schema = json!({ "type": "object", "properties": { "ok": { "type": "boolean" } }, "required": ["ok"] });
    for source in [CHAT_TEMPLATE, THINKING, super::support::TOOLS] {
        let rendered = render(source, ask("x").json_schema(schema.clone()).enable_thinking(false));
        let options = rendered.apply(SamplerOptions::greedy());
        assert!(matches!(&options.grammar, Some(Grammar::Template(grammar)) if !grammar.lazy), "{options:?}");
        Sampler::new(&model(), &options).unwrap();
    }
    let rendered = render(CHAT_TEMPLATE, ask("x").grammar("root ::= \"yes\" | \"no\""));
    let options = rendered.apply(SamplerOptions::greedy());
    assert!(matches!(&options.grammar, Some(Grammar::Gbnf(gbnf)) if gbnf.contains("yes")), "{options:?}");
}

#[test]
fn a_grammar_of_ones_own_stays_where_the_template_has_none() {
    let own = SamplerOptions::greedy().grammar(Grammar::gbnf("root ::= \"a\""));
    assert_eq!(render(CHAT_TEMPLATE, ask("x")).apply(own.clone()).grammar, own.grammar);
}

#[test]
fn threads_render_side_by_side() {
    let template = template(super::support::TOOLS);
    let expected = template.render(&ask("x")).unwrap().prompt().to_owned();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    assert_eq!(template.render(&ask("x")).unwrap().prompt(), expected);
                }
            });
        }
    });
}

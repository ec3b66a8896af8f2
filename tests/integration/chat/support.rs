//! Templates of the kinds that real models have, and ways to feed answers.

use llama_spec::Model;
use llama_spec::chat::{AnswerParser, ChatRequest, ChatTemplate, Delta, Message, Rendered};
use llama_spec_tests::zoo::Llama;
pub(crate) use llama_spec_tests::zoo::TOOLS_TEMPLATE as TOOLS;

/// ChatML whose answers begin with reasoning between tags.
pub(crate) const THINKING: &str = r#"
{%- for message in messages %}<|im_start|>{{ message.role }}
{% if message.role == 'assistant' and message.reasoning_content %}<think>
{{ message.reasoning_content }}
</think>

{% endif %}{{ message.content }}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and enable_thinking is false %}<think>

</think>

{% endif %}{% endif %}"#;

pub(crate) fn model() -> Model {
    Model::load(Llama::target(1).cached().unwrap()).unwrap()
}

pub(crate) fn template(source: &str) -> ChatTemplate {
    ChatTemplate::from_source(&model(), source).unwrap()
}

pub(crate) fn render(source: &str, request: ChatRequest) -> Rendered {
    template(source).render(&request).unwrap()
}

pub(crate) fn ask(text: &str) -> ChatRequest {
    ChatRequest::new(vec![Message::user(text)])
}

/// What was put together from the deltas of an answer.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Sum {
    pub(crate) content: String,
    pub(crate) reasoning: String,
    /// Names and arguments.
    pub(crate) calls: Vec<(String, String)>,
}

/// Feeds an answer character by character and adds the deltas up.
pub(crate) fn feed(parser: &mut AnswerParser, answer: &str) -> Sum {
    let mut sum = Sum::default();
    let last = answer.char_indices().next_back().map_or(0, |(index, _)| index);
    for (index, character) in answer.char_indices() {
        for delta in parser.feed(character.encode_utf8(&mut [0; 4]), index == last).unwrap() {
            match delta {
                Delta::Content(text) => sum.content += &text,
                Delta::Reasoning(text) => sum.reasoning += &text,
                Delta::ToolCall { index, name, arguments, .. } => {
                    sum.calls.resize_with(sum.calls.len().max(index + 1), Default::default);
                    sum.calls[index].0 = name.unwrap_or_else(|| sum.calls[index].0.clone());
                    sum.calls[index].1 += &arguments;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    sum
}

//! Chat templates: from messages to a prompt, and from the answer's text back to a message.
//!
//! A [`ChatTemplate`] is a model's own or one you give. Rendering a [`ChatRequest`] gives the prompt, together with
//! what sampling must keep to and the texts that end the answer; an [`AnswerParser`] then takes the answer apart, while it is
//! still being generated, into content, reasoning and tool calls. Messages and tools have the form of OpenAI's interface when
//! they are read from JSON or written to it.
//!
//! ```
//! use llama_spec::Model;
//! use llama_spec::chat::{ChatRequest, ChatTemplate, Message};
//! use llama_spec_tests::zoo::Llama;
//!
//! let model = Model::load(Llama::target(1).cached()?)?;
//! let template = ChatTemplate::chatml(&model)?;
//! let request = ChatRequest::new(vec![Message::system("Be brief."), Message::user("Hello!")]);
//! let rendered = template.render(&request)?;
//! assert_eq!(
//!     rendered.prompt(),
//!     "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello!<|im_end|>\n<|im_start|>assistant\n"
//! );
//!
//! let mut parser = rendered.answer_parser()?;
//! parser.feed("Hi", false)?;
//! parser.feed(" there.", true)?;
//! assert_eq!(parser.message().text(), "Hi there.");
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod message;
mod rendered;
mod request;
mod template;
mod tool;

pub use answer::{AnswerParser, Delta};
pub use message::{Content, ContentPart, Message, Role};
pub use rendered::Rendered;
pub use request::{ChatRequest, Continuation, ReasoningFormat};
pub use template::ChatTemplate;
pub use tool::{Tool, ToolCall, ToolChoice};

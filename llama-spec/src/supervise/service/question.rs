//! What is answered without generating.

use super::problem::{chat_problem, problem};
use super::stage::Loaded;
use crate::error::Result;
use crate::supervise::task::{Problem, Question, Reply};
use crate::text::Utf8Stream;

/// Answers a question.
pub(super) fn answer(loaded: &Loaded, question: Question) -> Result<Reply, Problem> {
    let vocab = loaded.engine.model().vocab();
    match question {
        Question::Tokenize { text, add_special, parse_special } => {
            let tokens = vocab.tokenize_with(text.as_bytes(), add_special, parse_special);
            let tokens = tokens.map_err(|error| problem(&error))?;
            let bytes = |token| vocab.bytes_with_special(token).map_err(|error| problem(&error));
            tokens.into_iter().map(|token| Ok((token, bytes(token)?))).collect::<Result<_, _>>().map(Reply::Tokens)
        }
        Question::Detokenize { tokens } => {
            let (mut utf8, mut text) = (Utf8Stream::default(), String::new());
            for token in tokens {
                text += &utf8.push(&vocab.bytes_with_special(token).map_err(|error| problem(&error))?);
            }
            text += &utf8.finish();
            Ok(Reply::Text(text))
        }
        Question::Render(chat) => {
            let template = loaded.template.as_ref().map_err(|why| Problem::about("chat", why.clone()))?;
            let rendered = template.render(&chat).map_err(|error| chat_problem(&error, &chat))?;
            Ok(Reply::Text(rendered.prompt().to_owned()))
        }
    }
}

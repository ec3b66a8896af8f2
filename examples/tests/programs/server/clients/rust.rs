//! With the crate `async-openai`.

use super::super::process::Server;
use super::{KEY, base, serving};
use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::types::chat::{
    ChatCompletionRequestUserMessageArgs, CreateChatCompletionRequest, CreateChatCompletionRequestArgs, FinishReason,
};
use futures_util::StreamExt as _;

fn client(server: &Server) -> Client<OpenAIConfig> {
    Client::with_config(OpenAIConfig::new().with_api_base(base(server)).with_api_key(KEY))
}

fn request(tokens: u32) -> CreateChatCompletionRequest {
    let message = ChatCompletionRequestUserMessageArgs::default().content("abc").build().unwrap();
    CreateChatCompletionRequestArgs::default()
        .model("zoo")
        .messages([message.into()])
        .max_completion_tokens(tokens)
        .temperature(0.0)
        .build()
        .unwrap()
}

#[tokio::test]
async fn the_rust_client_gets_what_it_expects() {
    let server = serving();
    let client = client(&server);
    let models = client.models().list().await.unwrap();
    assert_eq!(models.data.iter().map(|model| model.id.as_str()).collect::<Vec<_>>(), ["zoo"]);

    let whole = client.chat().create(request(40)).await.unwrap();
    let choice = &whole.choices[0];
    assert_eq!(choice.finish_reason, Some(FinishReason::Length));
    assert_eq!(whole.usage.as_ref().map(|usage| usage.completion_tokens), Some(40));
    let whole = choice.message.content.clone().unwrap();

    let mut stream = client.chat().create_stream(request(40)).await.unwrap();
    let (mut text, mut reason) = (String::new(), None);
    while let Some(chunk) = stream.next().await {
        for choice in chunk.unwrap().choices {
            text += &choice.delta.content.unwrap_or_default();
            reason = choice.finish_reason.or(reason);
        }
    }
    assert_eq!((text, reason), (whole.clone(), Some(FinishReason::Length)));

    // Several at once are the same as one after the other.
    let several =
        futures_util::future::join_all((0..4).map(|_| async { client.chat().create(request(40)).await })).await;
    for answer in several {
        assert_eq!(answer.unwrap().choices[0].message.content.as_ref(), Some(&whole));
    }

    let refused = client.chat().create(CreateChatCompletionRequest { temperature: Some(3000.0), ..request(2) }).await;
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("temperature"), "{error}");
}

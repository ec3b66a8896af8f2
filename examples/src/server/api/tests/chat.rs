//! Conversations: what is asked of the engine, and how its answers look, whole and in pieces.

use super::fake::{Fake, Script, begun, ended, finished, hello, tokens};
use super::*;
use llama_spec::chat::{ReasoningFormat, Role, ToolChoice};
use llama_spec::engine::{Drafters, Prompt};
use llama_spec::spec::Method;
use serde_json::json;

pub(super) const PATH: &str = "/v1/chat/completions";

pub(super) fn hi() -> Value {
    json!({ "messages": [{ "role": "user", "content": "Hi" }] })
}

pub(super) fn hi_with(fields: Value) -> Value {
    let mut body = hi();
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    body
}

async fn asked(fields: Value) -> llama_spec::supervise::Task {
    let fake = Fake::ready();
    fake.plays(Script::Play(hello(0)));
    let got = post(&over(&fake), PATH, hi_with(fields)).await;
    assert_eq!(got.status, 200, "{got:?}");
    fake.task()
}

async fn refused(fields: Value) -> (u16, String, Option<String>, String) {
    let fake = Fake::ready();
    let got = post(&over(&fake), PATH, hi_with(fields)).await;
    assert_eq!(fake.tasks(), 0);
    got.error()
}

#[tokio::test]
async fn a_whole_answer() {
    let fake = Fake::ready();
    fake.plays(Script::Play(hello(0)));
    let got = post(&over(&fake), PATH, hi()).await;
    assert_eq!(got.status, 200);
    let answer = got.json();
    assert_has(
        &answer,
        &json!({
            "object": "chat.completion",
            "model": "big-model",
            "choices": [{
                "index": 0,
                "message": { "role": "assistant", "content": "Hello there!" },
                "logprobs": null,
                "finish_reason": "stop",
            }],
            "usage": {
                "prompt_tokens": 4, "completion_tokens": 3, "total_tokens": 7,
                "prompt_tokens_details": { "cached_tokens": 2 },
            },
            "timings": {
                "cache_n": 2, "prompt_n": 2, "prompt_ms": 10.0, "prompt_per_second": 200.0,
                "predicted_n": 3, "predicted_ms": 30.0, "predicted_per_token_ms": 10.0, "predicted_per_second": 100.0,
                "draft_n": 2, "draft_n_accepted": 1,
            },
            "speculation": {
                "mode": "auto", "requested": ["draft-simple", "ngram-mod"], "effective": ["draft-simple"], "reason": null,
                "drafted": 2, "accepted": 1, "drafted_per_position": [1, 1], "accepted_per_position": [1, 0],
            },
        }),
    );
    assert!(answer["id"].as_str().unwrap().starts_with("chatcmpl-"));
    assert!(answer["choices"][0].get("token_details").is_none());
    let task = fake.task();
    assert_eq!((task.answers, task.chat.unwrap().messages.len()), (1, 1));
    assert_eq!(task.request.prompt, Prompt::Text(String::new()));
}

#[tokio::test]
async fn a_stream_byte_for_byte() {
    let fake = Fake::ready();
    fake.plays(Script::Play(hello(0)));
    let body = hi_with(json!({ "stream": true, "stream_options": { "include_usage": true } }));
    let got = post(&over(&fake), PATH, body).await;
    assert_eq!((got.status.as_u16(), &got.headers["cache-control"]), (200, &"no-cache".parse().unwrap()));
    let events = got.events();
    let id = events[0]["id"].as_str().unwrap();
    let created = events[0]["created"].as_u64().unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let chunk = |choice: &str| {
        format!(
            "data: {{\"choices\":[{choice}],\"created\":{created},\"id\":\"{id}\",\"model\":\"big-model\",\
             \"object\":\"chat.completion.chunk\",\"system_fingerprint\":\"llama-spec-{version}\"}}\n\n"
        )
    };
    let expected = chunk(
        "{\"delta\":{\"content\":\"\",\"role\":\"assistant\"},\"finish_reason\":null,\"index\":0,\"logprobs\":null}",
    ) + &chunk(
        "{\"delta\":{\"content\":\"Hello there\"},\"finish_reason\":null,\"index\":0,\"logprobs\":null}",
    ) + &chunk("{\"delta\":{\"content\":\"!\"},\"finish_reason\":null,\"index\":0,\"logprobs\":null}");
    assert_eq!(&got.body[..expected.len()], expected);
    let rest = &events[3..];
    assert_has(
        &rest[0],
        &json!({
            "choices": [{ "delta": {}, "finish_reason": "stop", "index": 0 }],
            "timings": { "predicted_n": 3 },
            "speculation": { "drafted": 2 },
        }),
    );
    assert_has(
        &rest[1],
        &json!({ "choices": [], "usage": { "total_tokens": 7 }, "timings": { "draft_n": 2 }, "speculation": { "accepted": 1 } }),
    );
    assert_eq!(rest[2], "[DONE]");
    assert!(got.body.ends_with("data: [DONE]\n\n") && rest.len() == 3);
}

#[tokio::test]
async fn several_answers_share_a_prompt() {
    let fake = Fake::ready();
    let steps = || [hello(1), hello(0)].concat();
    fake.plays(Script::Play(steps()));
    let got = post(&over(&fake), PATH, hi_with(json!({ "n": 2 }))).await;
    let expected = json!({
        "choices": [{ "index": 0, "finish_reason": "stop" }, { "index": 1, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 4, "completion_tokens": 6, "total_tokens": 10 },
    });
    assert_has(&got.json(), &expected);
    assert_eq!(fake.task().answers, 2);

    fake.plays(Script::Play(steps()));
    let got = post(&over(&fake), PATH, hi_with(json!({ "n": 2, "stream": true }))).await;
    let events = got.events();
    for index in 0..2 {
        let mine = events.iter().filter(|event| event["choices"][0]["index"] == index);
        let text: String = mine.filter_map(|event| event["choices"][0]["delta"]["content"].as_str()).collect();
        assert_eq!(text, "Hello there!");
    }
    assert_eq!(events.iter().filter(|event| *event == "[DONE]").count(), 1);
    assert!(!got.body.contains("usage"));
}

#[tokio::test]
async fn log_probabilities_and_sources_of_tokens() {
    let fake = Fake::ready();
    fake.plays(Script::Play(hello(0)));
    let wanted = json!({ "logprobs": true, "top_logprobs": 2, "token_details": true });
    let got = post(&over(&fake), PATH, hi_with(wanted.clone())).await.json();
    let content = &got["choices"][0]["logprobs"]["content"];
    assert_eq!(content.as_array().unwrap().len(), 3);
    let first = json!({
        "token": "Hello", "logprob": -0.25, "bytes": [72, 101, 108, 108, 111],
        "top_logprobs": [
            { "token": "Hello", "logprob": -0.25, "bytes": [72, 101, 108, 108, 111] },
            { "token": "other", "logprob": -2.5, "bytes": [111, 116, 104, 101, 114] },
        ],
    });
    assert_eq!(content[0], first);
    let sources: Vec<_> =
        got["choices"][0]["token_details"].as_array().unwrap().iter().map(|token| &token["source"]).collect();
    assert_eq!(sources, ["target", "draft-simple", "target"]);
    assert_eq!(fake.task().request.logprobs, Some(2));

    fake.plays(Script::Play(hello(0)));
    let mut streamed = wanted;
    streamed["stream"] = true.into();
    let events = post(&over(&fake), PATH, hi_with(streamed)).await.events();
    assert_eq!(events[1]["choices"][0]["logprobs"]["content"][0], first);
    let detail = json!({
        "id": 11, "text": " there", "source": "draft-simple", "logprob": -0.25,
        "top": [{ "id": 11, "text": " there", "logprob": -0.25 }, { "id": 99, "text": "other", "logprob": -2.5 }],
    });
    assert_eq!(events[1]["choices"][0]["token_details"][1], detail);
}

#[tokio::test]
async fn tools_are_called() {
    let message = json!({ "role": "assistant", "content": null, "reasoning_content": "Hm.", "tool_calls": [
        { "id": "c1", "type": "function", "function": { "name": "weather", "arguments": "{\"city\":1}" } },
    ]});
    let call = |name: Value, arguments: &str| {
        let delta = json!({ "tool_call": { "index": 0, "id": "c1", "name": name, "arguments": arguments } });
        let token =
            json!({ "token": 1, "bytes": [], "text": "", "source": "target", "logprob": null, "deltas": [delta] });
        serde_json::from_value(json!({ "tokens": [token] })).unwrap()
    };
    let thought: llama_spec::supervise::Update = serde_json::from_value(json!({ "tokens": [
        { "token": 1, "bytes": [], "text": "", "source": "target", "logprob": null, "deltas": [{ "reasoning": "Hm." }] },
    ]}))
    .unwrap();
    let steps = [
        begun(),
        thought,
        call(json!("weather"), ""),
        call(Value::Null, "{\"city\""),
        call(Value::Null, ":1}"),
        finished("end-of-text", message),
    ];
    let steps: Vec<_> = steps.into_iter().map(|update| (0, Ok(update))).collect();
    let fake = Fake::ready();
    fake.plays(Script::Play(steps.clone()));
    let tools = json!([
        { "type": "function", "function": { "name": "weather", "description": null, "strict": true,
          "parameters": { "type": "object", "properties": { "city": { "type": "integer" } } } } },
        { "type": "function", "function": { "name": "other" } },
    ]);
    let got = post(&over(&fake), PATH, hi_with(json!({ "tools": tools }))).await.json();
    assert_has(
        &got["choices"][0],
        &json!({
            "finish_reason": "tool_calls",
            "message": { "content": null, "reasoning_content": "Hm.", "tool_calls": [
                { "id": "c1", "type": "function", "function": { "name": "weather", "arguments": "{\"city\":1}" } },
            ]},
        }),
    );
    let chat = fake.task().chat.unwrap();
    assert_eq!((chat.tools.len(), chat.tool_choice, chat.parallel_tool_calls), (2, ToolChoice::Auto, false));

    fake.plays(Script::Play(steps));
    let choice = json!({ "type": "function", "function": { "name": "weather" } });
    let body = hi_with(json!({ "tools": tools, "tool_choice": choice, "parallel_tool_calls": true, "stream": true }));
    let events = post(&over(&fake), PATH, body).await.events();
    let deltas: Vec<_> = events.iter().filter_map(|event| event["choices"][0].get("delta")).collect();
    assert_eq!(
        deltas[1..],
        [
            &json!({ "reasoning_content": "Hm." }),
            &json!({ "tool_calls": [
                { "index": 0, "id": "c1", "type": "function", "function": { "name": "weather", "arguments": "" } },
                { "index": 0, "function": { "arguments": "{\"city\"" } },
            ]}),
            &json!({ "tool_calls": [{ "index": 0, "function": { "arguments": ":1}" } }] }),
            &json!({}),
        ]
    );
    assert_eq!(events[events.len() - 2]["choices"][0]["finish_reason"], "tool_calls");
    let chat = fake.task().chat.unwrap();
    assert_eq!((chat.tools.len(), chat.tool_choice, chat.parallel_tool_calls), (1, ToolChoice::Required, true));
}

#[tokio::test]
async fn choices_of_tools() {
    let tool = |name: &str| json!({ "type": "function", "function": { "name": name } });
    let tools = json!([tool("a"), tool("b"), tool("c")]);
    let with = |choice: Value| json!({ "tools": tools, "tool_choice": choice });
    for (word, choice) in [("auto", ToolChoice::Auto), ("none", ToolChoice::None), ("required", ToolChoice::Required)] {
        let chat = asked(with(word.into())).await.chat.unwrap();
        assert_eq!((chat.tools.len(), chat.tool_choice), (3, choice));
    }
    let allowed =
        json!({ "type": "allowed_tools", "allowed_tools": { "mode": "required", "tools": [tool("a"), tool("c")] } });
    let chat = asked(with(allowed)).await.chat.unwrap();
    assert_eq!(chat.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["a", "c"]);
    assert_eq!(chat.tool_choice, ToolChoice::Required);
    for (bad, param) in [
        (with(json!("sometimes")), "tool_choice"),
        (with(tool("unknown")), "tool_choice"),
        (with(json!({ "type": "custom" })), "tool_choice.type"),
        (json!({ "tool_choice": "required" }), "tool_choice"),
        (json!({ "tools": [{ "type": "web_search" }] }), "tools[0].type"),
        (json!({ "tools": [tool("a"), tool("a")] }), "tools[1].function.name"),
        (json!({ "tools": [{ "type": "function", "function": {} }] }), "tools[0].function"),
        (json!({ "functions": [] , "function_call": "auto" }), "functions"),
    ] {
        let (status, _, found, message) = refused(bad).await;
        assert_eq!((status, found.as_deref()), (400, Some(param)), "{message}");
    }
}

#[tokio::test]
async fn the_form_of_an_answer() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "integer" } } });
    let strict = json!({ "type": "json_schema", "json_schema": { "name": "x", "strict": true, "schema": schema } });
    let chat = asked(json!({ "response_format": strict })).await.chat.unwrap();
    assert_eq!(chat.json_schema, Some(schema.clone()));
    let chat = asked(json!({ "response_format": { "type": "json_object" } })).await.chat.unwrap();
    assert_eq!(chat.json_schema, Some(json!({ "type": "object" })));
    assert_eq!(asked(json!({ "response_format": { "type": "text" } })).await.chat.unwrap().json_schema, None);
    assert_eq!(asked(json!({ "json_schema": schema })).await.chat.unwrap().json_schema, Some(schema.clone()));
    let chat = asked(json!({ "grammar": "root ::= \"a\"" })).await.chat.unwrap();
    assert_eq!(chat.grammar.as_deref(), Some("root ::= \"a\""));
    let deep = (0..60).fold(json!({}), |inner, _| json!({ "items": inner }));
    let properties: serde_json::Map<_, _> = (0..2000).map(|index| (format!("p{index}"), json!({}))).collect();
    let many = json!({ "type": "object", "properties": properties });
    for (bad, param) in [
        (json!({ "response_format": { "type": "xml" } }), "response_format.type"),
        (json!({ "response_format": { "type": "json_schema" } }), "response_format.json_schema.schema"),
        (json!({ "response_format": { "type": "json_schema", "json_schema": { "schema": deep } } }), "response_format"),
        (json!({ "json_schema": deep }), "json_schema"),
        (json!({ "json_schema": many }), "json_schema"),
        (json!({ "response_format": { "type": "json_object", "schema": many } }), "response_format"),
        (
            json!({ "tools": [{ "type": "function", "function": { "name": "f", "parameters": many } }] }),
            "tools[0].function.parameters",
        ),
        (json!({ "json_schema": false }), "json_schema"),
        (json!({ "grammar": "root ::= \"a\"", "json_schema": schema }), "grammar"),
        (json!({ "response_format": "json" }), "response_format"),
    ] {
        let (status, _, found, message) = refused(bad).await;
        assert_eq!((status, found.as_deref()), (400, Some(param)), "{message}");
    }
}

#[tokio::test]
async fn how_tokens_are_chosen() {
    let request = asked(json!({
        "temperature": 0.5, "top_p": 0.9, "top_k": 7, "min_p": 0.1, "typical_p": 0.8, "seed": 42, "frequency_penalty": 0.5,
        "presence_penalty": -0.5, "repeat_penalty": 1.1, "repeat_last_n": -1, "max_completion_tokens": 9, "max_tokens": 100,
        "stop": ["a", "", "b"], "logit_bias": { "5": -100, "6": 1.5 }, "ignore_eos": true, "xtc_probability": 0.3,
        "xtc_threshold": 0.2, "dry_multiplier": 0.7, "dry_penalty_last_n": -1, "dynatemp_range": 0.2, "min_keep": 2,
        "t_max_predict_ms": 1500, "user": "me", "metadata": { "a": "b" }, "store": true, "service_tier": "auto",
        "cache_prompt": false, "something_new": [1, { "x": 2 }], "verbosity": "low", "prediction": null,
    }))
    .await
    .request;
    let sampler = &request.options.sampler;
    assert_eq!((sampler.temperature, sampler.top_p, sampler.top_k, sampler.min_p), (0.5, 0.9, 7, 0.1));
    assert_eq!((sampler.seed, sampler.typical_p, sampler.ignore_eos, sampler.min_keep), (Some(42), 0.8, true, 2));
    let penalties = &sampler.penalties;
    assert_eq!((penalties.frequency, penalties.presence, penalties.repeat), (0.5, -0.5, 1.1));
    assert_eq!((penalties.last_n, sampler.dry.as_ref().unwrap().last_n), (1024, 1024));
    assert_eq!(sampler.xtc.map(|xtc| (xtc.probability, xtc.threshold)), Some((0.3, 0.2)));
    assert_eq!(sampler.dynamic_temperature.unwrap().range, 0.2);
    let bias: Vec<_> = sampler.logit_bias.iter().map(|entry| (entry.token.id(), entry.bias)).collect();
    assert_eq!(bias, [(5, -100.0), (6, 1.5)]);
    assert_eq!((request.options.max_tokens, request.options.stop), (Some(9), vec!["a".into(), "b".into()]));
    assert_eq!((request.deadline, request.logprobs), (Some(Duration::from_millis(1500)), None));

    let request =
        asked(json!({ "temperature": 0, "seed": -1, "n_predict": -1, "stop": "x", "mirostat": 2, "samplers": "kt" }))
            .await
            .request;
    assert!(request.options.sampler.seed.is_none() && request.options.max_tokens.is_none());
    assert_eq!(request.options.stop, ["x"]);
    assert_eq!(request.options.sampler.stages.len(), 2);
}

#[tokio::test]
async fn values_out_of_range_are_named() {
    for (bad, param) in [
        (json!({ "temperature": 3000 }), "temperature"),
        (json!({ "temperature": "hot" }), "temperature"),
        (json!({ "top_p": 1.5 }), "top_p"),
        (json!({ "repeat_penalty": 0 }), "repeat_penalty"),
        (json!({ "frequency_penalty": 1e9 }), "frequency_penalty"),
        (json!({ "dry_multiplier": 1, "dry_base": 0 }), "dry_base"),
        (json!({ "dry_multiplier": 1, "dry_sequence_breakers": "x" }), "dry_sequence_breakers"),
        (json!({ "n": 0 }), "n"),
        (json!({ "n": 129 }), "n"),
        (json!({ "stop": vec!["x"; 100] }), "stop"),
        (json!({ "stop": [1] }), "stop[0]"),
        (json!({ "seed": 1.5 }), "seed"),
        (json!({ "max_tokens": "many" }), "max_tokens"),
        (json!({ "logit_bias": { "5": "x" } }), "logit_bias"),
        (json!({ "logit_bias": [[1, 2, 3]] }), "logit_bias[0]"),
        (json!({ "samplers": ["magic"] }), "samplers"),
        (json!({ "samplers": ["top_k"], "xtc_probability": 0.5 }), "samplers"),
        (json!({ "mirostat": 3 }), "mirostat"),
        (json!({ "top_logprobs": 3 }), "top_logprobs"),
        (json!({ "logprobs": true, "top_logprobs": 101 }), "top_logprobs"),
        (json!({ "logprobs": 5 }), "logprobs"),
        (json!({ "stream": "yes" }), "stream"),
        (json!({ "stream_options": { "include_usage": 1 } }), "stream_options.include_usage"),
        (json!({ "lora": [{ "id": 0, "scale": 1.0 }] }), "lora"),
        (json!({ "modalities": ["text", "audio"] }), "modalities"),
        (json!({ "audio": { "voice": "x" } }), "audio"),
        (json!({ "chat_template_kwargs": [] }), "chat_template_kwargs"),
    ] {
        let (status, _, found, message) = refused(bad.clone()).await;
        assert_eq!((status, found.as_deref()), (400, Some(param)), "{bad}: {message}");
        assert!(message.contains(param.split('.').next().unwrap()) || !message.contains("setting"), "{message}");
    }
}

#[tokio::test]
async fn messages_in_all_their_forms() {
    let fake = Fake::ready();
    fake.plays(Script::Play(hello(0)));
    let body = json!({ "messages": [
        { "role": "developer", "content": "Be brief." },
        { "role": "user", "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }], "name": "me" },
        { "role": "assistant", "content": null, "refusal": null, "audio": null, "tool_calls": [
            { "id": "c", "type": "function", "function": { "name": "f", "arguments": "{}" } } ] },
        { "role": "tool", "tool_call_id": "c", "content": "1" },
        { "role": "assistant", "content": [{ "type": "refusal", "refusal": "no" }] },
        { "role": "user", "content": "Go on." },
    ]});
    assert_eq!(post(&over(&fake), PATH, body).await.status, 200);
    let messages = fake.task().chat.unwrap().messages;
    let texts: Vec<_> = messages.iter().map(|message| message.text()).collect();
    assert_eq!(texts, ["Be brief.", "a\nb", "", "1", "no", "Go on."]);
    // The template knows no developer.
    assert_eq!(messages[0].role, Role::System);
    let image = json!([{ "type": "text", "text": "a" }, { "type": "image_url", "image_url": { "url": "x" } }]);
    for (bad, param) in [
        (json!([]), "messages"),
        (json!("Hi"), "messages"),
        (json!(["Hi"]), "messages[0]"),
        (json!([{ "role": "user", "content": image }]), "messages[0].content[1].type"),
        (json!([{ "role": "user", "content": [{ "type": "input_audio" }] }]), "messages[0].content[0].type"),
        (json!([{ "role": "user", "content": [{ "text": "x" }] }]), "messages[0].content[0]"),
        (json!([{ "role": "user", "content": 7 }]), "messages[0].content"),
        (json!([{ "role": "user" }]), "messages[0].content"),
        (json!([{ "content": "Hi" }]), "messages[0]"),
        (json!([{ "role": "user", "content": "Hi" }, { "role": 1, "content": "" }]), "messages[1].role"),
    ] {
        let got = post(&over(&fake), PATH, json!({ "messages": bad })).await;
        let (status, _, found, message) = got.error();
        assert_eq!((status, found.as_deref()), (400, Some(param)), "{bad}: {message}");
    }
    let (status, code, param, _) = post(&over(&fake), PATH, json!({ "model": "x" })).await.error();
    assert_eq!((status, code.as_str(), param.as_deref()), (400, "missing_field", Some("messages")));
}

#[tokio::test]
async fn reasoning_is_chosen() {
    let chat = asked(json!({
        "reasoning_format": "none", "chat_template_kwargs": { "enable_thinking": false, "level": 3 }, "reasoning_effort": "low",
        "reasoning_budget_tokens": 5,
    }))
    .await;
    assert_eq!(chat.request.options.sampler.reasoning_budget, Some(5));
    let chat = chat.chat.unwrap();
    assert_eq!((chat.reasoning_format, chat.enable_thinking), (ReasoningFormat::None, false));
    assert_eq!(Value::Object(chat.template_arguments), json!({ "level": 3, "reasoning_effort": "low" }));
    assert!(asked(json!({ "enable_thinking": true })).await.chat.unwrap().enable_thinking);
    assert!(!asked(json!({ "reasoning_effort": "none" })).await.chat.unwrap().enable_thinking);
}

#[tokio::test]
async fn speculation_is_chosen() {
    let drafting = async |wanted: Value| asked(json!({ "speculation": wanted })).await.request.drafting;
    assert_eq!(drafting(json!("auto")).await.drafters, Drafters::Auto);
    assert_eq!(drafting(json!("off")).await.drafters, Drafters::Off);
    assert_eq!(drafting(json!({ "mode": "off" })).await.drafters, Drafters::Off);
    let named = drafting(json!({ "methods": ["draft-simple"], "draft_max": 3 })).await;
    assert_eq!((named.drafters, named.draft_max), (Drafters::Methods(vec![Method::DraftSimple]), Some(3)));
    assert_eq!(drafting(json!({ "draft_max": 2 })).await.draft_max, Some(2));
    // What the engine was made for and has lost costs nobody an answer.
    assert_eq!(drafting(json!("ngram-mod")).await.drafters, Drafters::Off);
    let both = drafting(json!(["ngram-mod", "draft-simple"])).await;
    assert_eq!(both.drafters, Drafters::Methods(vec![Method::DraftSimple]));
    for (bad, param) in [
        (json!("magic"), "speculation"),
        (json!({ "methods": ["draft-mtp"] }), "speculation.methods"),
        (json!({ "methods": [7] }), "speculation.methods[0]"),
        (json!({ "draft_max": -1 }), "speculation.draft_max"),
        (json!({ "mode": "off", "methods": ["draft-simple"] }), "speculation.methods"),
        (json!({ "draft_maximum": 3 }), "speculation.draft_maximum"),
    ] {
        let (status, _, found, message) = refused(json!({ "speculation": bad })).await;
        assert_eq!((status, found.as_deref()), (400, Some(param)), "{message}");
    }
}

#[tokio::test]
async fn answers_tell_what_became_of_speculation() {
    let fake = Fake::ready();
    let told = async |wanted: Value| {
        fake.plays(Script::Play(hello(0)));
        post(&over(&fake), PATH, hi_with(json!({ "speculation": wanted }))).await.json()["speculation"].clone()
    };
    let off = told(json!("off")).await;
    assert_has(
        &off,
        &json!({ "mode": "off", "requested": [], "effective": [], "reason": "switched off by the request" }),
    );
    let lost = told(json!(["draft-simple", "ngram-mod"])).await;
    let expected = json!({
        "mode": "methods", "requested": ["draft-simple", "ngram-mod"], "effective": ["draft-simple"],
        "reason": "not loaded now: ngram-mod",
    });
    assert_has(&lost, &expected);
}

#[tokio::test]
async fn limits_end_answers() {
    for (reason, told) in
        [("max-tokens", "length"), ("context-full", "length"), ("deadline", "length"), ("stop-string", "stop")]
    {
        let fake = Fake::ready();
        let message = json!({ "role": "assistant", "content": "x" });
        fake.plays(Script::Play(vec![(0, Ok(begun())), (0, Ok(finished(reason, message)))]));
        let got = post(&over(&fake), PATH, hi()).await.json();
        assert_eq!(got["choices"][0]["finish_reason"], told);
    }
}

#[tokio::test]
async fn text_that_was_held_back_comes_with_the_end() {
    let fake = Fake::ready();
    let end = ended(json!({ "text": "<tag", "deltas": [{ "content": "<tag" }] }));
    fake.plays(Script::Play(vec![(0, Ok(begun())), (0, Ok(tokens(&["a"]))), (0, Ok(end))]));
    let events = post(&over(&fake), PATH, hi_with(json!({ "stream": true }))).await.events();
    let text: String = events.iter().filter_map(|event| event["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(text, "a<tag");
}

//! Streams of conversations that pause, break off, are given up, or say nothing for a while.

use super::chat::{PATH, hi, hi_with};
use super::fake::{Fake, Script, begun, finished, hello, problem, tokens};
use super::*;
use serde_json::json;

#[tokio::test]
async fn a_restart_is_a_pause() {
    let steps = || {
        let paused = serde_json::from_value(json!({ "paused": { "reason": "died in /usr/lib/x.so" } })).unwrap();
        let resumed = serde_json::from_value(json!("resumed")).unwrap();
        let progress = serde_json::from_value(json!({ "prefill": { "done": 2, "total": 4 } })).unwrap();
        let mut steps = hello(0);
        steps.splice(2..2, [paused, resumed, progress].map(|update| (0, Ok(update))));
        steps
    };
    let fake = Fake::ready();
    fake.plays(Script::Play(steps()));
    let body = hi_with(json!({ "stream": true, "token_details": true, "return_progress": true }));
    let events = post(&over(&fake), PATH, body).await.events();
    assert_has(&events[2], &json!({ "choices": [], "recovery": { "event": "paused", "reason": "died in x.so" } }));
    assert_has(&events[3], &json!({ "choices": [], "recovery": { "event": "resumed" } }));
    assert_has(&events[4], &json!({ "choices": [], "prompt_progress": { "done": 2, "total": 4, "processed": 2 } }));

    // Clients that know nothing of it get chunks as they know them, each with its choice.
    fake.plays(Script::Play(steps()));
    let got = post(&over(&fake), PATH, hi_with(json!({ "stream": true }))).await;
    assert!(got.body.contains(": the engine is being restarted\n\n: the engine goes on\n\n"));
    assert!(got.events().iter().all(|event| event == "[DONE]" || event["choices"].as_array().unwrap().len() == 1));
}

#[tokio::test]
async fn a_stream_that_breaks_off_says_so() {
    let broken = || problem("interrupted", "the worker died, and it cannot go on", None);
    let fake = Fake::ready();
    fake.plays(Script::Play(vec![(0, Ok(begun())), (0, Ok(tokens(&["a"]))), (0, Err(broken()))]));
    let got = post(&over(&fake), PATH, hi_with(json!({ "stream": true }))).await;
    let events = got.events();
    assert_eq!((got.status.as_u16(), events.len()), (200, 3));
    assert_has(&events[2], &json!({ "error": { "code": "interrupted", "type": "unavailable_error" } }));

    // The same where nothing is told of why.
    fake.plays(Script::Play(vec![(0, Ok(begun()))]));
    let events = post(&over(&fake), PATH, hi_with(json!({ "stream": true }))).await.events();
    assert_eq!(events.last().unwrap()["error"]["code"], "interrupted");

    // What the server cancels did not come to an end.
    for stream in [true, false] {
        fake.plays(Script::Play(vec![(0, Ok(begun())), (0, Ok(finished("cancelled", Value::Null)))]));
        let got = post(&over(&fake), PATH, hi_with(json!({ "stream": stream }))).await;
        assert!(got.body.contains("\"code\":\"interrupted\"") && !got.body.contains("[DONE]"), "{}", got.body);
    }

    // What is known before anything was written has a status of its own.
    fake.plays(Script::Play(vec![(0, Err(problem("too-long", "too long", None)))]));
    let got = post(&over(&fake), PATH, hi_with(json!({ "stream": true }))).await;
    assert_eq!((got.error().0, got.error().1.as_str()), (400, "context_length_exceeded"));
    fake.plays(Script::Play(vec![(0, Ok(begun())), (0, Err(broken()))]));
    assert_eq!(post(&over(&fake), PATH, hi()).await.error().0, 503);
}

#[tokio::test]
async fn who_hangs_up_frees_the_engine() {
    let fake = Fake::ready();
    let (sender, steps) = tokio::sync::mpsc::channel(8);
    fake.plays(Script::Live(steps));
    sender.send((0, Ok(begun()))).await.unwrap();
    let response = over(&fake).oneshot(posting(PATH, hi_with(json!({ "stream": true })).to_string())).await.unwrap();
    let mut body = response.into_body().into_data_stream();
    assert!(piece(&mut body).await.unwrap().starts_with(b"data: {"));
    sender.send((0, Ok(tokens(&["a"])))).await.unwrap();
    piece(&mut body).await.unwrap();
    assert!(!sender.is_closed());
    drop(body);
    tokio::time::timeout(LONG, sender.closed()).await.expect("the answers are dropped with the body");

    // As well before anything was heard of the answer, and where it does not stream.
    for stream in [true, false] {
        let (sender, steps) = tokio::sync::mpsc::channel(8);
        fake.plays(Script::Live(steps));
        let waiting = over(&fake).oneshot(posting(PATH, hi_with(json!({ "stream": stream })).to_string()));
        let (waiting, before) = (tokio::spawn(waiting), fake.tasks());
        while fake.tasks() == before {
            tokio::task::yield_now().await;
        }
        waiting.abort();
        tokio::time::timeout(LONG, sender.closed()).await.expect("the answers are dropped with the request");
    }
}

#[tokio::test]
async fn who_reads_slowly_holds_up_only_the_own_answer() {
    let fake = Fake::ready();
    let (sender, steps) = tokio::sync::mpsc::channel(4);
    fake.plays(Script::Live(steps));
    sender.send((0, Ok(begun()))).await.unwrap();
    let response = over(&fake).oneshot(posting(PATH, hi_with(json!({ "stream": true })).to_string())).await.unwrap();
    let mut body = response.into_body().into_data_stream();
    piece(&mut body).await.unwrap();
    // Nobody reads: what is sent stays where it is.
    let mut taken = 0;
    while sender.try_send((0, Ok(tokens(&["a"])))).is_ok() {
        taken += 1;
    }
    assert_eq!(taken, 4);
    for _ in 0..taken {
        assert!(piece(&mut body).await.is_some());
    }
}

#[tokio::test]
async fn a_silent_stream_gives_signs_of_life() {
    let fake = Fake::ready();
    let (_sender, steps) = tokio::sync::mpsc::channel(4);
    fake.plays(Script::Live(steps));
    let router = with(&fake, |options| {
        (options.first_step, options.keep_alive) = (Duration::from_millis(10), Some(Duration::from_millis(10)));
    });
    let body = hi_with(json!({ "stream": true }));
    let response = router.oneshot(posting(PATH, body.to_string())).await.unwrap();
    assert_eq!(response.status(), 200);
    let mut body = response.into_body().into_data_stream();
    assert!(piece(&mut body).await.unwrap().starts_with(b":"));
}

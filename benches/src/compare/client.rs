//! A client that reads answers as they come, and the time with them.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

/// An answer, with times counted from the moment it was asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Answer {
    /// The text.
    pub(super) text: String,
    /// Tokens generated, as the server counts.
    pub(super) tokens: u64,
    /// Tokens of the prompt that the server had not to compute, since it remembered them.
    pub(super) cached: u64,
    /// Until the first piece of text.
    pub(super) first: Duration,
    /// Until the last one.
    pub(super) last: Duration,
    /// Tokens per second as the server counts; nothing if it does not say.
    pub(super) own_speed: Option<f64>,
    /// Tokens drafted, and how many of them were accepted.
    pub(super) drafted: (u64, u64),
}

impl Answer {
    /// Tokens per second after the first one, by our own clock; nothing for an answer too short to tell.
    pub(super) fn speed(&self) -> Option<f64> {
        let time = self.last.saturating_sub(self.first).as_secs_f64();
        (self.tokens > 1 && time > 0.0).then(|| (self.tokens - 1) as f64 / time)
    }
}

/// Asks servers, one at a time or several at once.
#[derive(Clone, Debug)]
pub(super) struct Client(ureq::Agent);

impl Client {
    /// A client that gives up on an answer after this time.
    pub(super) fn new(patience: Duration) -> Self {
        let config = ureq::Agent::config_builder().timeout_global(Some(patience)).http_status_as_error(false);
        // Each request has a connection of its own, so that none fails because the server has closed an old one.
        Self(config.max_idle_connections(0).build().into())
    }

    /// Whether the server answers this path with status 200.
    pub(super) fn is_ok(&self, url: &str) -> bool {
        let config = self.0.get(url).config().timeout_global(Some(Duration::from_secs(5)));
        config.build().call().is_ok_and(|answer| answer.status() == 200)
    }

    /// Sends a request for a stream and reads all of it.
    ///
    /// # Errors
    /// When there is no answer in time, or one that says what is wrong.
    pub(super) fn ask(&self, url: &str, body: &Value) -> Result<Answer> {
        let start = Instant::now();
        let request = self.0.post(url).content_type("application/json");
        let mut answer = request.send(body.to_string()).with_context(|| format!("no answer from {url}"))?;
        let status = answer.status();
        if status != 200 {
            let words = answer.body_mut().read_to_string().unwrap_or_default();
            bail!("{url} answers {status}: {}", words.trim());
        }
        let reader = BufReader::new(answer.body_mut().as_reader());
        read(reader, || start.elapsed()).with_context(|| format!("the answer of {url}"))
    }
}

/// Reads a stream of server-sent events, of `/completion` or of `/v1/chat/completions`. `clock` tells the time.
///
/// # Errors
/// When it breaks off, or carries an error.
pub(super) fn read(mut reader: impl BufRead, clock: impl Fn() -> Duration) -> Result<Answer> {
    let mut answer = Answer::default();
    let (mut line, mut begun, mut timings) = (String::new(), false, false);
    loop {
        line.clear();
        if reader.read_line(&mut line).context("the stream failed")? == 0 {
            break;
        }
        // Comments and names of events are of no interest, and every event of both servers is one line.
        let Some(data) = line.strip_prefix("data:").map(str::trim) else { continue };
        if data == "[DONE]" {
            break;
        }
        let event: Value = serde_json::from_str(data).context("an event is no JSON")?;
        if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
            bail!("{}", error["message"].as_str().map_or_else(|| error.to_string(), str::to_owned));
        }
        let piece = event["content"].as_str().or(event["choices"][0]["delta"]["content"].as_str()).unwrap_or_default();
        if !piece.is_empty() {
            answer.last = clock();
            if !begun {
                answer.first = answer.last;
            }
            begun = true;
            answer.text += piece;
        }
        if let Some(numbers) = event.get("timings").filter(|numbers| numbers.is_object()) {
            let count = |name: &str| numbers[name].as_u64().unwrap_or(0);
            answer.tokens = count("predicted_n");
            answer.cached = count("cache_n");
            answer.own_speed = numbers["predicted_per_second"].as_f64();
            answer.drafted = (count("draft_n"), count("draft_n_accepted"));
            timings = true;
        }
    }
    if !timings {
        bail!("the stream broke off after {} bytes of text", answer.text.len());
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// A clock that goes one second further with each look.
    fn ticking() -> impl Fn() -> Duration {
        let seconds = Cell::new(0);
        move || {
            seconds.set(seconds.get() + 1);
            Duration::from_secs(seconds.get())
        }
    }

    const COMPLETION: &str = "\
        : a comment\n\
        data: {\"content\":\"\",\"stop\":false}\n\n\
        data: {\"content\":\"One\",\"stop\":false}\n\n\
        event: message\n\
        data: {\"content\":\" two\",\"stop\":false}\r\n\r\n\
        data:{\"content\":\" three\",\"stop\":true,\"timings\":{\"predicted_n\":5,\"predicted_per_second\":12.5,\"cache_n\":2,\
        \"draft_n\":8,\"draft_n_accepted\":3}}\n\n";

    #[test]
    fn a_completion_is_read_with_its_times() {
        let answer = read(COMPLETION.as_bytes(), ticking()).unwrap();
        assert_eq!(answer.text, "One two three");
        assert_eq!((answer.tokens, answer.cached, answer.drafted, answer.own_speed), (5, 2, (8, 3), Some(12.5)));
        assert_eq!((answer.first, answer.last), (Duration::from_secs(1), Duration::from_secs(3)));
        assert_eq!(answer.speed(), Some(2.0), "four tokens in two seconds");
    }

    #[test]
    fn a_chat_is_read_to_its_mark_of_the_end() {
        let stream = "\
            data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null}}]}\n\n\
            data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\n\
            data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"timings\":{\"predicted_n\":1}}\n\n\
            data: [DONE]\n\n\
            data: this is not read any more\n\n";
        let answer = read(stream.as_bytes(), ticking()).unwrap();
        assert_eq!((answer.text.as_str(), answer.tokens, answer.speed()), ("Hello", 1, None));
    }

    #[test]
    fn errors_and_ends_before_the_end_are_told() {
        let cut = &COMPLETION[..COMPLETION.find("data:{").unwrap()];
        let error = read(cut.as_bytes(), ticking()).unwrap_err().to_string();
        assert_eq!(error, "the stream broke off after 7 bytes of text");
        let error = read(&b"data: {\"error\":{\"message\":\"too long\"}}\n\n"[..], ticking()).unwrap_err();
        assert_eq!(error.to_string(), "too long");
        assert!(read(&b"data: {\"content\":\n\n"[..], ticking()).unwrap_err().to_string().contains("no JSON"));
    }

    /// Answers one request with these bytes and closes; gives its address, and the request at the end.
    fn server(answer: &'static str) -> (String, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = String::new();
            let mut buffer = [0; 4096];
            while !request.contains("\r\n\r\n") || (request.starts_with("POST") && !request.ends_with('}')) {
                let count = stream.read(&mut buffer).unwrap();
                if count == 0 {
                    break;
                }
                request += std::str::from_utf8(&buffer[..count]).unwrap();
            }
            stream.write_all(answer.as_bytes()).unwrap();
            request
        });
        (url, thread)
    }

    #[test]
    fn a_server_is_asked_and_its_stream_read() {
        const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n\
            data: {\"content\":\"Hi\",\"stop\":true,\"timings\":{\"predicted_n\":1}}\n\n";
        let (url, thread) = server(ANSWER);
        let client = Client::new(Duration::from_secs(20));
        let answer = client.ask(&format!("{url}/completion"), &serde_json::json!({ "prompt": "x" })).unwrap();
        assert_eq!(answer.text, "Hi");
        let request = thread.join().unwrap();
        assert!(
            request.starts_with("POST /completion HTTP/1.1\r\n") && request.ends_with("{\"prompt\":\"x\"}"),
            "{request}"
        );
    }

    #[test]
    fn a_refusal_is_told_in_the_words_of_the_server() {
        let (url, thread) =
            server("HTTP/1.1 400 Bad Request\r\nContent-Length: 9\r\nConnection: close\r\n\r\nno prompt");
        let error = Client::new(Duration::from_secs(20)).ask(&url, &serde_json::json!({})).unwrap_err().to_string();
        assert!(error.contains("400") && error.ends_with("no prompt"), "{error}");
        thread.join().unwrap();
    }

    #[test]
    fn a_server_that_says_nothing_is_not_waited_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let error = Client::new(Duration::from_millis(200)).ask(&url, &serde_json::json!({})).unwrap_err().to_string();
        assert!(error.starts_with("no answer from http://"), "{error}");
    }
}

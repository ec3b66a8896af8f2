//! Streams that are read side by side.

use super::process::Server;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

/// A stream of `/v1/completions`.
pub(crate) struct Stream {
    reader: BufReader<TcpStream>,
    /// The text so far.
    pub(crate) text: String,
    /// The last event that says how speculation did.
    pub(crate) speculation: Value,
    /// Whether `[DONE]` has come.
    pub(crate) done: bool,
}

impl Stream {
    /// Asks for so many tokens behind this prompt.
    pub(crate) fn begin(server: &Server, prompt: &str, tokens: u32) -> Self {
        let body = json!({"prompt": prompt, "max_tokens": tokens, "temperature": 0, "stream": true}).to_string();
        let length = body.len();
        let head = format!(
            "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n"
        );
        let mut connection = server.connect();
        connection.write_all((head + &body).as_bytes()).unwrap();
        let reader = BufReader::new(connection);
        Self { reader, text: String::new(), speculation: Value::Null, done: false }
    }

    /// Reads the next event. False at the end.
    pub(crate) fn next(&mut self) -> bool {
        let mut line = String::new();
        while self.reader.read_line(&mut line).unwrap() > 0 {
            if let Some(data) = line.trim_end().strip_prefix("data: ") {
                if data == "[DONE]" {
                    self.done = true;
                    return false;
                }
                let event: Value = serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {data}"));
                assert!(event.get("error").is_none(), "{event}");
                self.text += event["choices"][0]["text"].as_str().unwrap_or_default();
                if !event["speculation"].is_null() {
                    self.speculation = event["speculation"].clone();
                }
                return true;
            }
            assert!(!line.starts_with("HTTP/1.1") || line.starts_with("HTTP/1.1 200"), "{line}");
            line.clear();
        }
        false
    }

    /// Reads to the end.
    pub(crate) fn finish(mut self) -> Self {
        while self.next() {}
        self
    }
}

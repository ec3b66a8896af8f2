//! A server with a model of the zoo, started as people start it.

use llama_spec_tests::zoo;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{fs, thread};

/// The key of the server.
pub(crate) const KEY: &str = "secret";

/// How long something may take that takes a second on a machine with nothing else to do.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running server. Dropping it ends it.
pub(crate) struct Served {
    child: Child,
    /// Such as `http://127.0.0.1:1234`.
    pub(crate) url: String,
    _folder: tempfile::TempDir,
}

impl Served {
    /// One with two slots that drafts with a small model, once it is ready.
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let template = folder.path().join("template.jinja");
        fs::write(&template, TEMPLATE).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_server"))
            .args(["--port", "0", "--alias", "zoo", "--slots", "2", "--context", "4096", "--threads", "1"])
            .args(["--api-key", KEY, "--model"])
            .arg(zoo::file("target"))
            .arg("--draft")
            .arg(zoo::file("draft-0.8"))
            .arg("--chat-template-file")
            .arg(&template)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, said) = mpsc::channel();
        // Read to the end, or the server would wait to be read.
        thread::spawn(move || stderr.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line))));
        let mut lines = Vec::new();
        let url = loop {
            let line = said.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("it does not listen: {lines:#?}"));
            if let Some(url) = line.strip_prefix("listening on ") {
                break url.to_owned();
            }
            lines.push(line);
        };
        let served = Self { child, url, _folder: folder };
        served.wait_for("/ready", |answer| answer.starts_with("HTTP/1.1 200"));
        served
    }

    /// Asks until the answer, with its head, is as wished.
    pub(crate) fn wait_for(&self, path: &str, wished: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let answer = self.get(path);
            if wished(&answer) {
                return answer;
            }
            assert!(start.elapsed() < PATIENCE, "{path} stays {answer}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The answer to a plain request, head and all.
    pub(crate) fn get(&self, path: &str) -> String {
        use std::io::Write as _;
        let host = self.url.strip_prefix("http://").unwrap();
        let mut connection = std::net::TcpStream::connect(host).unwrap();
        let head =
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {KEY}\r\nConnection: close\r\n\r\n");
        connection.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// ChatML with tools; the model has no template of its own.
const TEMPLATE: &str = r#"
{%- if tools %}<|im_start|>system
Tools:
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}Call them as <tool_call>{"name": ..., "arguments": ...}</tool_call><|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}<|im_start|>user
<tool_response>
{{ message.content }}
</tool_response><|im_end|>
{% else %}<|im_start|>{{ message.role }}
{% if message.content %}{{ message.content }}{% endif %}
{%- for call in message.tool_calls %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"#;

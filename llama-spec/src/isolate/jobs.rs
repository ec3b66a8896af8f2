//! What a worker can be told to do.

use crate::probe::Errand;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::Write as _;
use std::time::Duration;

/// A job with its argument.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Job {
    /// Load models, and try them.
    Probe(Value),
    /// Keep an engine, and go on talking: [`worker::work`](super::worker::work) sees to it.
    Serve,
    /// Answer what was said.
    Echo(Value),
    /// Abort. This and what follows is for tests.
    Abort,
    /// End with this status, without an answer.
    Exit(i32),
    /// Never answer.
    Hang,
    /// Panic.
    Panic,
    /// Write a lot besides the answer.
    Noise,
}

/// What does a job. The error is for people.
type Handler = fn(Value) -> Result<Value, String>;

impl Job {
    /// Does it, in this process.
    ///
    /// # Errors
    /// Why the job could not be done, other than by ending the process.
    pub(crate) fn run(self) -> Result<Value, String> {
        let (handler, argument): (Handler, Value) = match self {
            Self::Probe(what) => (probe, what),
            Self::Serve => (serve, Value::Null),
            Self::Echo(what) => (Ok, what),
            Self::Abort => (abort, Value::Null),
            Self::Exit(status) => (exit, status.into()),
            Self::Hang => (hang, Value::Null),
            Self::Panic => (panic, Value::Null),
            Self::Noise => (noise, Value::Null),
        };
        handler(argument)
    }
}

fn probe(errand: Value) -> Result<Value, String> {
    let errand: Errand = serde_json::from_value(errand).map_err(|why| format!("no errand: {why}"))?;
    let report = errand.run().map_err(|why| why.to_string())?;
    serde_json::to_value(report).map_err(|why| why.to_string())
}

fn serve(_: Value) -> Result<Value, String> {
    Err("an engine is not kept for one answer".into())
}

fn abort(_: Value) -> Result<Value, String> {
    eprintln!("about to abort");
    std::process::abort()
}

fn exit(status: Value) -> Result<Value, String> {
    std::process::exit(status.as_i64().and_then(|status| status.try_into().ok()).unwrap_or_default())
}

fn hang(_: Value) -> Result<Value, String> {
    eprintln!("about to hang");
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

fn panic(_: Value) -> Result<Value, String> {
    panic!("a job that panics")
}

/// More than a pipe holds, on both outputs, with bytes that are no text and no end of line before the answer.
fn noise(_: Value) -> Result<Value, String> {
    let mut out = std::io::stdout().lock();
    for index in 0..20_000 {
        out.write_all(b"\nllama-spec \xff noise \n<llama-spec 0000>\x05\0\0\0").map_err(|why| why.to_string())?;
        eprintln!("noise {index}");
    }
    out.write_all(b"no end of line").map_err(|why| why.to_string())?;
    Ok("done".into())
}

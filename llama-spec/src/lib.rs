#![doc = include_str!("../README.md")]

pub mod arch;
pub mod batch;
pub mod chat;
mod checksum;
pub mod compat;
pub mod context;
pub mod control;
mod devices;
pub mod engine;
pub mod error;
mod ffi;
pub mod file;
pub mod generate;
mod gguf;
mod hidden;
pub mod isolate;
pub mod lookup;
pub mod memory;
pub mod model;
pub mod options;
pub mod probe;
mod runner;
pub mod sample;
pub mod spec;
pub mod supervise;
pub mod text;
mod token;
pub mod vocab;

pub use batch::Batch;
pub use context::{Context, ContextOptions};
pub use devices::{Device, DeviceKind};
pub use engine::{Engine, EngineBuilder, Request, Response};
pub use error::{DecodeError, Error, Failure, Result};
pub use file::{Description, Kind, ModelFile};
pub use generate::{ContextFull, Event, GenerateOptions, Generation, Generator, StopReason};
pub use memory::{Memory, Rollback};
pub use model::{Model, ModelBuilder};
pub use sample::{Sampler, SamplerOptions};
pub use token::{Slot, Token};
pub use vocab::Vocab;

pub use llama_sys as sys;

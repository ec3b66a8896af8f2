//! The model zoo: tiny GGUF models written on the fly, so that every test runs on real llama.cpp contexts without a
//! download, and so that what a model must answer is known beforehand.
//!
//! [`zoo::Llama`] describes a model; [`zoo::Llama::cached`] writes its file once and gives the path;
//! [`zoo::Llama::continuation`] is the oracle: the tokens that greedy decoding must produce.
//!
//! ```
//! use llama_spec_tests::zoo::Llama;
//!
//! let target = Llama::target(1);
//! let draft = target.draft(0.8);
//! let (target_file, draft_file) = (target.cached()?, draft.cached()?);
//! assert!(target_file.is_file() && draft_file.is_file());
//!
//! let prompt = target.vocabulary().tokenize("abc");
//! let answer = target.continuation(&prompt, 5);
//! assert_eq!(target.vocabulary().bytes(&answer), b"defgh");
//! # Ok::<(), std::io::Error>(())
//! ```

pub mod broken;
pub mod children;
pub mod gguf;
pub mod mutate;
pub mod rng;
pub mod vocab;
pub mod zoo;

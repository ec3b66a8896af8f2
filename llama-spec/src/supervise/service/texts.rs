//! The texts of earlier requests: kept over loads of the same vocabulary, and in a file over workers.

use super::Say;
use crate::file::{ModelFile, Tokenizer};
use crate::lookup::{Store, StoreError, StoreSettings};
use crate::supervise::load::Load;
use crate::supervise::wire::FromWorker;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How often what is new is written to the file: so much is lost at most with a worker that dies.
const PERIOD: Duration = Duration::from_secs(60);

/// A store and its file. Dropping it writes what is new.
#[derive(Debug)]
pub(super) struct Texts {
    store: Store,
    terms: Terms,
    /// If there is a file that may be written.
    _saver: Option<Saver>,
}

/// What texts can be used for.
#[derive(Clone, Debug, PartialEq)]
struct Terms {
    bytes: usize,
    file: Option<PathBuf>,
    vocabulary: u64,
}

impl Texts {
    /// Those for this load: the former ones if they fit, else those of the file. Nothing when none are to be kept.
    pub(super) fn of(former: Option<Self>, load: &Load, target: &ModelFile, say: &Say) -> Option<Self> {
        let vocabulary = target.tokenizer().map(Tokenizer::fingerprint).filter(|_| load.store_bytes > 0)?;
        let terms = Terms { bytes: load.store_bytes, file: load.store_file.clone(), vocabulary };
        if let Some(former) = former.filter(|former| former.terms == terms) {
            return Some(former);
        }
        let settings = StoreSettings::default().bytes(terms.bytes);
        let fingerprint = vocabulary.to_le_bytes();
        let Some(path) = &terms.file else {
            return Some(Self { store: Store::new(settings), terms, _saver: None });
        };
        let (store, is_ours) = open(path, &fingerprint, settings, say);
        let saver = is_ours.then(|| Saver::start(store.clone(), path.clone(), fingerprint, say.clone()));
        Some(Self { store, terms, _saver: saver })
    }

    pub(super) fn store(&self) -> Store {
        self.store.clone()
    }
}

/// The store in a file, or a new one, and whether the file may be written.
fn open(path: &Path, fingerprint: &[u8], settings: StoreSettings, say: &Say) -> (Store, bool) {
    let error = match Store::load(path, fingerprint, settings) {
        Ok(store) => return (store, true),
        Err(error) => error,
    };
    let (is_ours, what_now) = match &error {
        StoreError::File { source, .. } if source.kind() == ErrorKind::NotFound => return (Store::new(settings), true),
        StoreError::NotAStore => (false, "it is left as it is, and nothing is saved"),
        _ => (true, "it was begun anew"),
    };
    say(FromWorker::Warning(format!("{}: {error} ({what_now})", path.display())));
    (Store::new(settings), is_ours)
}

/// A thread that writes what is new now and then, and when this is dropped.
#[derive(Debug)]
struct Saver {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Saver {
    fn start(store: Store, path: PathBuf, fingerprint: [u8; 8], say: Say) -> Self {
        let (stop, stopped) = mpsc::channel::<()>();
        let mut saved = store.stats();
        let warn = say.clone();
        let mut save = move || {
            let now = store.stats();
            if now != saved {
                match store.save(&path, &fingerprint) {
                    Ok(()) => saved = now,
                    Err(error) => say(FromWorker::Warning(format!("the texts are not saved: {error}"))),
                }
            }
        };
        let thread = thread::Builder::new().name("llama-spec store".into()).spawn(move || {
            while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                save();
            }
            save();
        });
        let thread = thread.inspect_err(|error| warn(FromWorker::Warning(format!("the texts are not saved: {error}"))));
        Self { stop: Some(stop), thread: thread.ok() }
    }
}

impl Drop for Saver {
    fn drop(&mut self) {
        self.stop = None;
        // A panic there was told when it happened.
        self.thread.take().map(JoinHandle::join);
    }
}

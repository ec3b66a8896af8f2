//! A service that is spoken to in frames: in a process of its own, on its standard input and output.

use super::Service;
use crate::isolate::{Nonce, Scanner, wrap};
use crate::supervise::wire::{self, FromWorker, ToWorker};
use std::io::{self, Read, Write};
use std::sync::{Mutex, PoisonError};

/// How much is read at once.
const PIECE: usize = 64 << 10;

/// Why it came to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It was told to.
    Stopped,
    /// Nobody is there any more.
    Gone,
}

/// Serves whoever writes to the one stream and reads the other, until it is told to stop.
///
/// # Panics
/// When something is said that is not understood, and when there can be no threads: the process is then of no use.
pub(crate) fn serve(nonce: &Nonce, mut incoming: impl Read, outgoing: impl Write + Send + 'static) -> End {
    let (own, outgoing) = (nonce.clone(), Mutex::new(outgoing));
    let say = move |message| say(&own, &message, &mut *outgoing.lock().unwrap_or_else(PoisonError::into_inner));
    let service = match Service::new(say) {
        Ok(service) => service,
        Err(error) => panic!("no threads: {error}"),
    };
    let mut scanner = Scanner::new(nonce);
    let mut piece = vec![0; PIECE];
    loop {
        let read = match incoming.read(&mut piece) {
            Ok(0) => return End::Gone,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return End::Gone,
        };
        scanner.push(&piece[..read]);
        while let Some(message) = scanner.next_frame() {
            match wire::decode::<ToWorker>(&message) {
                Ok(ToWorker::Stop) => {
                    service.stop();
                    return End::Stopped;
                }
                Ok(message) => service.handle(message),
                Err(error) => panic!("a message was not understood: {error}"),
            }
        }
    }
}

/// Writes a message in one piece. Whoever does not read any more is noticed by the end of what it writes.
fn say(nonce: &Nonce, message: &FromWorker, out: &mut impl Write) {
    let frame = wire::encode(message).and_then(|bytes| wrap(nonce, &bytes));
    let written = frame.and_then(|frame| {
        out.write_all(&frame)?;
        out.flush()
    });
    if let Err(error) = written {
        tracing::error!(%error, "a message could not be written");
    }
}

//! The same through frames, as in a process of its own.

use super::support::{greedy, load};
use crate::isolate::{Nonce, Scanner, wrap};
use crate::supervise::Load;
use crate::supervise::service::{End, serve};
use crate::supervise::task::Update;
use crate::supervise::wire::{self, FromWorker, ToWorker, VERSION};
use std::io::{Read, Write};
use std::thread;

#[test]
fn a_service_is_spoken_to_in_frames() {
    let nonce = Nonce::new();
    let (to_worker, mut into) = std::io::pipe().unwrap();
    let (mut from_worker, out) = std::io::pipe().unwrap();
    let own = nonce.clone();
    let worker = thread::spawn(move || serve(&own, to_worker, out));
    let mut send = |message: &ToWorker| {
        into.write_all(&wrap(&nonce, &wire::encode(message).unwrap()).unwrap()).unwrap();
    };
    let (mut scanner, mut piece) = (Scanner::new(&nonce), [0; 1000]);
    let mut receive = || loop {
        if let Some(message) = scanner.next_frame() {
            return wire::decode::<FromWorker>(&message).unwrap();
        }
        let read = from_worker.read(&mut piece).unwrap();
        assert!(read > 0, "it ended");
        scanner.push(&piece[..read]);
    };
    let FromWorker::Hello { version, .. } = receive() else { panic!("no hello") };
    assert_eq!(version, VERSION);
    send(&ToWorker::Load { load: Box::new(load("target")), restarts: 3 });
    send(&ToWorker::Load { load: Box::new(Load::new("no-such-file.gguf")), restarts: 3 });
    send(&ToWorker::Load { load: Box::new(load("target")), restarts: 3 });
    // Loading may have been broken off, or not.
    let mut answers = Vec::new();
    while answers.len() < 3 {
        match receive() {
            FromWorker::Loaded(_) => answers.push("loaded"),
            FromWorker::NotLoaded(_) => answers.push("not loaded"),
            _ => {}
        }
    }
    assert_eq!(answers[1..], ["not loaded", "loaded"]);
    send(&ToWorker::Start { id: 9, task: Box::new(greedy("Hello", 30)), standing: Vec::new() });
    let mut tokens = 0;
    loop {
        match receive() {
            FromWorker::Update { id: 9, update: Update::Tokens(new), .. } => tokens += new.len(),
            FromWorker::Update { id: 9, update: Update::Finished(_), .. } => break,
            FromWorker::Broken { problem, .. } => panic!("{problem}"),
            _ => {}
        }
    }
    assert_eq!(tokens, 30);
    send(&ToWorker::Stop);
    assert_eq!(worker.join().unwrap(), End::Stopped);
}

#[test]
fn it_ends_when_nobody_is_there() {
    let (_from_worker, out) = std::io::pipe().unwrap();
    assert_eq!(serve(&Nonce::new(), std::io::empty(), out), End::Gone);
}

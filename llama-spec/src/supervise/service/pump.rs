//! One thread that tells all answers: it waits for the events of all of them at once.
//!
//! Whoever reads what it says may be slow. Then this thread waits, and the engine does not: its events are kept.

use super::answer::{Answer, Said};
use super::check::Check;
use crate::supervise::wire::FromWorker;
use async_channel::{Receiver, Sender};
use futures_core::Stream;
use futures_util::stream::SelectAll;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::thread;

/// Something whose events are told.
#[derive(Debug)]
pub(super) enum Told {
    Answer(Box<Answer>),
    Check(Check),
    /// Something that is said once, by who must not wait.
    Once(Option<Box<FromWorker>>),
}

impl Stream for Told {
    type Item = Said;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Said>> {
        match self.get_mut() {
            Self::Answer(answer) => Pin::new(answer.as_mut()).poll_next(context),
            Self::Check(check) => Pin::new(check).poll_next(context),
            Self::Once(message) => Poll::Ready(message.take().map(Said::Message)),
        }
    }
}

/// Starts the thread. It ends when nobody can bring it anything more and all was told.
pub(super) fn start(mut hear: impl FnMut(Said) + Send + 'static) -> io::Result<Sender<Told>> {
    let (sender, incoming) = async_channel::unbounded();
    let thread = thread::Builder::new().name("llama-spec answers".into());
    thread.spawn(move || {
        pollster::block_on(async {
            let (mut incoming, mut all) = (pin!(incoming), SelectAll::new());
            while let Some(said) = next(incoming.as_mut(), &mut all).await {
                hear(said);
            }
        });
    })?;
    Ok(sender)
}

async fn next(mut incoming: Pin<&mut Receiver<Told>>, all: &mut SelectAll<Told>) -> Option<Said> {
    poll_fn(|context| {
        let mut closed = false;
        while let Poll::Ready(told) = incoming.as_mut().poll_next(context) {
            match told {
                Some(told) => all.push(told),
                None => {
                    closed = true;
                    break;
                }
            }
        }
        match Pin::new(&mut *all).poll_next(context) {
            Poll::Ready(Some(said)) => Poll::Ready(Some(said)),
            Poll::Ready(None) if closed => Poll::Ready(None),
            _ => Poll::Pending,
        }
    })
    .await
}
